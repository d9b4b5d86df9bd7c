import { expectSuccess, HttpConnection } from '../client/http-connection.ts';
import { rowsOfAnswer } from '../workloads/vector-requests.ts';

/** The rows that each message finds, asked one after another. */
export async function vectorAnswers(port: number, messages: readonly Uint8Array[]): Promise<number[][]> {
  const connection = await HttpConnection.open(port);
  const found: number[][] = [];
  for (const message of messages) found.push(rowsOfAnswer(expectSuccess(await connection.send(message)).body));
  connection.close();
  return found;
}
