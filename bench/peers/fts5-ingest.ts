/**
 * Loads a document file into SQLite FTS5 (porter stemmer, one transaction of 1,000 documents, WAL, synchronous=FULL) and
 * prints one line of JSON. Reading and parsing the file happen before the clock starts, so this is the peer at its best.
 * `content` keeps the documents in the table, as a document database must; `contentless` keeps only the index.
 * `--file FILE --directory DIRECTORY --mode content|contentless`
 */
import { Database } from 'bun:sqlite';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { scriptArguments } from '../engines/script-arguments.ts';
import { zipfKey } from '../workloads/zipf-documents.ts';

const batchSize = 1_000;

interface Line {
  title: string;
  body: string;
  year: number;
  category: string;
}

const { file, directory, mode } = scriptArguments('file', 'directory', 'mode');
const lines = readFileSync(file, 'utf8').trimEnd().split('\n');
const documents = lines.map((line) => ({ ...(JSON.parse(line) as Line), line }));

const database = new Database(join(directory, 'fts5.db'), { strict: true });
database.run('PRAGMA journal_mode = WAL');
database.run('PRAGMA synchronous = FULL');
const contentOption = mode === 'contentless' ? ", content=''" : '';
database.run(`CREATE VIRTUAL TABLE texts USING fts5(title, body, tokenize='porter unicode61'${contentOption})`);
database.run(
  'CREATE TABLE documents (id INTEGER PRIMARY KEY, key TEXT UNIQUE, year INTEGER, category TEXT, body TEXT)',
);
const insertText = database.prepare('INSERT INTO texts (rowid, title, body) VALUES (?, ?, ?)');
const insertDocument = database.prepare('INSERT INTO documents VALUES (?, ?, ?, ?, ?)');
const keepsDocuments = mode === 'content';

const start = performance.now();
for (let first = 0; first < documents.length; first += batchSize) {
  database.run('BEGIN IMMEDIATE');
  for (const [offset, document] of documents.slice(first, first + batchSize).entries()) {
    const id = first + offset + 1;
    insertText.run(id, document.title, document.body);
    if (keepsDocuments) insertDocument.run(id, zipfKey(id - 1), document.year, document.category, document.line);
  }
  database.run('COMMIT');
}
const seconds = (performance.now() - start) / 1_000;
console.log(JSON.stringify({ documents: documents.length, seconds }));
database.close();
