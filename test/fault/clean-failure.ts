import { expect } from 'bun:test';
import type { ChildServer } from '../support/fault/child-server.ts';
import type { Answer } from '../support/fault/wire-client.ts';

/** Requests that the server has answered with this status, as its metrics say. */
export async function answeredWith(server: ChildServer, status: number): Promise<number> {
  const text = await (await fetch(`${server.metricsUrl}/metrics`)).text();
  const lines = text.split('\n').filter((line) => line.startsWith('sundew_http_requests_total{'));
  const counted = lines.filter((line) => line.includes(`code="${status}"`));
  return counted.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0);
}

/**
 * The failure is clean: the documented status and code in the documented shape, nothing of the machine in the text,
 * and the server answers the next request.
 */
export async function expectClean(server: ChildServer, answer: Answer, status: number, code: string): Promise<void> {
  expect({ status: answer.status, code: (answer.body as { code?: string }).code, body: answer.body }).toEqual({
    status,
    code,
    body: answer.body,
  });
  const { retry_after_ms, ...body } = answer.body as Record<string, unknown>;
  expect(Object.keys(body).sort()).toEqual(['code', 'error', 'message', 'retryable']);
  expect(body.error).toBe(body.message);
  if (retry_after_ms !== undefined) expect(retry_after_ms).toBeGreaterThanOrEqual(1);
  expect(String(body.message)).not.toMatch(/\/tmp\/|\/work\/|\/src\/|node_modules|\.ts:\d|\bat \w+ \(/);
  expect((await fetch(`${server.url}/healthz`)).status).toBe(200);
}
