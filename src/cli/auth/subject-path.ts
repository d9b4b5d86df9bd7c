import { kindOfSubject } from '../../access/subjects.ts';
import { pathBelow } from '../client/client-verb.ts';

/** A user by its name, a role or group as `role:NAME`, `group:NAME`, and what is below it. */
export function subjectPath(subject: string, ...below: readonly string[]): string {
  return kindOfSubject(subject) === 'user'
    ? userPath(subject, ...below)
    : pathBelow('/auth/v1/subjects', subject, ...below);
}

export function userPath(user: string, ...below: readonly string[]): string {
  return pathBelow('/auth/v1/users', user, ...below);
}
