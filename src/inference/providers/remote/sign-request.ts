import { AwsV4Signer } from 'aws4fetch';

interface SigningKey {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken: string | undefined;
}

interface RequestToSign {
  readonly url: URL;
  readonly body: string;
  readonly region: string;
  readonly service: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Milliseconds since 1970; a signature is good for some minutes. */
  readonly nowMs: number;
}

/** The headers of a POST that is signed with AWS Signature Version 4, those that were given included. */
export async function signedHeaders(
  { url, body, region, service, headers, nowMs }: RequestToSign,
  { accessKeyId, secretAccessKey, sessionToken }: SigningKey,
): Promise<Record<string, string>> {
  const datetime = new Date(nowMs).toISOString().replaceAll(/[:-]|\.\d{3}/g, '');
  const signer = new AwsV4Signer({
    method: 'POST',
    url: url.href,
    headers,
    body,
    accessKeyId,
    secretAccessKey,
    ...(sessionToken !== undefined && { sessionToken }),
    region,
    service,
    datetime,
  });
  const signed = await signer.sign();
  return Object.fromEntries(signed.headers);
}
