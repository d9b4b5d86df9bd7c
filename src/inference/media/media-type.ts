import { ServiceError } from '../../protocol/service-error.ts';

interface Signature {
  readonly type: string;
  /** Latin-1 text at an offset; all of them must be there. */
  readonly marks: readonly (readonly [offset: number, text: string])[];
}

/** The accepted types, by how their bytes begin. Others are refused: drawings and documents are programs. */
const signatures: readonly Signature[] = [
  { type: 'image/png', marks: [[0, '\u0089PNG\r\n\u001a\n']] },
  { type: 'image/jpeg', marks: [[0, '\u00ff\u00d8\u00ff']] },
  {
    type: 'image/webp',
    marks: [
      [0, 'RIFF'],
      [8, 'WEBP'],
    ],
  },
  { type: 'image/gif', marks: [[0, 'GIF87a']] },
  { type: 'image/gif', marks: [[0, 'GIF89a']] },
  {
    type: 'audio/wav',
    marks: [
      [0, 'RIFF'],
      [8, 'WAVE'],
    ],
  },
  { type: 'audio/flac', marks: [[0, 'fLaC']] },
  { type: 'audio/ogg', marks: [[0, 'OggS']] },
  { type: 'audio/mpeg', marks: [[0, 'ID3']] },
];

/** Other spellings of a type. */
const spellings: Readonly<Record<string, string>> = {
  'image/jpg': 'image/jpeg',
  'image/pjpeg': 'image/jpeg',
  'audio/x-wav': 'audio/wav',
  'audio/wave': 'audio/wav',
  'audio/vnd.wave': 'audio/wav',
  'audio/mp3': 'audio/mpeg',
  'audio/x-flac': 'audio/flac',
  'audio/opus': 'audio/ogg',
  'application/ogg': 'audio/ogg',
};

/** Says nothing about what the bytes are. */
const vague = ['application/octet-stream', 'binary/octet-stream', 'image/*', 'audio/*', ''];

/** The type that the bytes show, which must be the declared one where that says anything. Throws `invalid_media`. */
export function mediaTypeOf(bytes: Uint8Array, declared: string | undefined, where: string): string {
  const found = signatures.find(({ marks }) => marks.every(([offset, text]) => hasText(bytes, offset, text)));
  const type = found?.type ?? (isMpegFrame(bytes) ? 'audio/mpeg' : undefined);
  if (type === undefined) {
    throw new ServiceError('invalid_media', `${where} is none of PNG, JPEG, WebP, GIF, WAV, MP3, FLAC and Ogg`);
  }
  const plain = (declared ?? '').split(';')[0]?.trim().toLowerCase() ?? '';
  if (!vague.includes(plain) && (spellings[plain] ?? plain) !== type) {
    throw new ServiceError('invalid_media', `${where} is declared as ${plain.slice(0, 64)}, but its bytes are ${type}`);
  }
  return type;
}

function hasText(bytes: Uint8Array, offset: number, text: string): boolean {
  return (
    bytes.byteLength >= offset + text.length && [...text].every((each, at) => bytes[offset + at] === each.charCodeAt(0))
  );
}

/** Sound without a tag begins with a frame: eleven set bits, and a layer. */
function isMpegFrame(bytes: Uint8Array): boolean {
  const [first = 0, second = 0] = bytes;
  return first === 0xff && (second & 0xe0) === 0xe0 && (second & 0x06) !== 0;
}
