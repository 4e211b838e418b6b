import { readFileSync } from 'node:fs';
import { EverturnError, errorText } from '../../common/errors.ts';
import type { ImageContent } from '../../common/messages.ts';
import { invalidArgument } from '../failure.ts';

const kinds: [mimeType: string, first: string][] = [
  ['image/png', '\x89PNG'],
  ['image/jpeg', '\xff\xd8\xff'],
  ['image/gif', 'GIF8'],
  ['image/webp', 'RIFF'],
];

/** Images of a prompt. What a file is, its first bytes say, not its name. */
export function readImage(path: string): ImageContent {
  const bytes = readBytes(path);
  const head = bytes.toString('latin1', 0, 12);
  const isWebp = head.endsWith('WEBP');
  const mimeType = kinds.find(([type, first]) => head.startsWith(first) && (type !== 'image/webp' || isWebp))?.[0];
  if (mimeType === undefined) throw invalidArgument(`${path} is no PNG, JPEG, GIF or WebP image.`);
  return { type: 'image', data: bytes.toString('base64'), mimeType };
}

function readBytes(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    throw new EverturnError('not_found', `The image ${path} cannot be read: ${errorText(error)}`, {
      cause: error,
      details: { file: path },
    });
  }
}
