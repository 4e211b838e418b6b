import { z } from 'zod';

/** A text in which * stands for any characters, or a regular expression that may match anywhere. */
export type Pattern = string | RegExp;

export const patternSchema = z.union([z.string().min(1), z.instanceof(RegExp)]);

/** Tests whole texts against a pattern. Nothing is remembered between two tests, whatever flags the expression has. */
export function matcher(pattern: Pattern): (text: string) => boolean {
  const expression = typeof pattern === 'string' ? wildcard(pattern) : stateless(pattern);
  return (text) => expression.test(text);
}

function wildcard(pattern: string): RegExp {
  const parts = pattern.split('*').map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  return new RegExp(`^${parts.join('.*')}$`, 's');
}

/** Without g and y, which would make `test` go on where the last one ended. */
function stateless({ source, flags }: RegExp): RegExp {
  return new RegExp(source, flags.replace(/[gy]/g, ''));
}
