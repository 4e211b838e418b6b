import type { z } from 'zod';
import { EverturnError } from '../../common/errors.ts';

/** Options of a ready-made hook, checked when the agent's file loads. @throws EverturnError `invalid_config` */
export function checkOptions<Schema extends z.ZodType>(
  hook: string,
  schema: Schema,
  options: unknown,
): z.output<Schema> {
  const parsed = schema.safeParse(options ?? {});
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  const where = issue?.code === 'unrecognized_keys' ? issue.keys.join(', ') : issue?.path.join('.') || 'options';
  throw new EverturnError('invalid_config', `${hook}: ${where}: ${issue?.message}`, { details: { hook } });
}

export function isFunction(value: unknown): boolean {
  return typeof value === 'function';
}
