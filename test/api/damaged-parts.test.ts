import { expect, test } from 'bun:test';
import { join } from 'node:path';
import { openBehind } from '../support/behind-the-server.ts';
import { startTestServer } from '../support/test-server.ts';

const mock = { provider: 'mock', model: 'words', dimensions: 16 };
const indexes = {
  vectors: { type: 'embeddings', field: 'text', embedder: mock },
  windows: { type: 'embeddings', field: 'text', embedder: mock, chunker: { provider: 'service', text: {} } },
};
const pieces = { kind: 'chunk', field: 'text', chunk_size: 20 };

test.each(['enrichments', 'full_index'])(
  'what the server made of a document and the disk has damaged is made again when the document is written as it was (%s)',
  async (sync_level) => {
    await using server = await startTestServer();
    const path = '/db/v1/tables/t';
    await server.send('POST', path, { indexes });
    await server.send('PUT', `${path}/artifacts/pieces/enrichment`, pieces);
    const write = (level: string) =>
      server.send('POST', `${path}/batch`, { inserts: { a: { text: 'amber birch' } }, sync_level: level });
    expect((await write('full_index')).status).toBe(201);
    const shown = () => server.send('GET', `${path}/lookup/a?fields=_embeddings,_artifacts`);
    const whole = await shown();
    expect(Object.keys((whole.body as unknown as { _embeddings: object })._embeddings)).toEqual(['vectors', 'windows']);
    const [file] = [...new Bun.Glob('ranges/*/*/documents.db').scanSync({ cwd: server.directory })];
    {
      using database = openBehind(join(server.directory, file ?? ''));
      // The head of a part, with the hash of its source, stays as it is.
      const damage = 'UPDATE parts SET body = CAST(substr(body, 1, 24) || zeroblob(length(body) - 24) AS BLOB)';
      expect(database.run(damage).changes).toBe(3);
    }
    expect((await shown()).body).toMatchObject({ code: 'data_corrupted' });
    expect((await write(sync_level)).status).toBe(201);
    expect(await shown()).toMatchObject({ status: 200, body: whole.body });
  },
);
