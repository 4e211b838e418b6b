import { validateToolArguments } from '@earendil-works/pi-ai';
import type { z } from 'zod';
import { errorText } from '../common/errors.ts';
import type { ToolCall } from '../common/messages.ts';
import type { Tool } from './tool.ts';

export type ValidatedArguments = { ok: true; args: unknown } | { ok: false; reason: string };

/**
 * Arguments of a call as the tool gets them: prepared, coerced as pi does ("5" for a number), then parsed by the tool's
 * zod schema, which may refine and transform. A failure is a text for the model in pi's format, never a throw.
 */
export function validateArguments(tool: Tool, call: ToolCall): ValidatedArguments {
  const { name, description, parameters, schema } = tool;
  try {
    const raw =
      tool.prepareArguments === undefined ? call.arguments : tool.prepareArguments(structuredClone(call.arguments));
    const direct = schema?.safeParse(raw);
    if (direct?.success && call.argumentsError === undefined) return { ok: true, args: direct.data };
    const prepared = { ...call, arguments: raw as ToolCall['arguments'] };
    const coerced: unknown = validateToolArguments({ name, description, parameters }, prepared);
    if (schema === undefined) return { ok: true, args: coerced };
    const parsed = schema.safeParse(coerced);
    return parsed.success
      ? { ok: true, args: parsed.data }
      : { ok: false, reason: failureText(name, parsed.error, raw) };
  } catch (error) {
    return { ok: false, reason: errorText(error) };
  }
}

/** The format of pi's validator (pi-semantics §1.5), for rules that only the zod schema knows. */
function failureText(name: string, error: z.ZodError, received: unknown): string {
  const issues = error.issues.map((issue) => `  - ${issue.path.join('.') || 'root'}: ${issue.message}`);
  return `Validation failed for tool "${name}":\n${issues.join('\n')}\n\nReceived arguments:\n${JSON.stringify(received, null, 2)}`;
}
