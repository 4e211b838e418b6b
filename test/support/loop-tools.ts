import { z } from 'zod';
import { defineTool, type Tool, type ToolContext } from '../../src/agent/tool.ts';
import type { Harness } from './harness.ts';

/** Arguments of the tools below. `at`: the gate of the talk to wait at. */
const place = z.object({ at: z.string().optional(), text: z.string().default('ok') });

/** What tools did, in order: "enter a", "leave a", where `a` is the id of the call. */
export class Entered {
  private readonly notes = new Map<string, string[]>();

  note({ sessionId, toolCallId }: ToolContext, what: string): void {
    this.of(sessionId).push(`${what} ${toolCallId}`);
  }

  of(sessionId: string): string[] {
    const known = this.notes.get(sessionId) ?? [];
    this.notes.set(sessionId, known);
    return known;
  }
}

/**
 * Tools that return their text once their gate is open: `say`, `one_by_one` (sequential), `stubborn` (deaf to its
 * signal), `stop` (asks for the end of the run), `fail` (throws its text).
 */
export function loopTools(harness: Harness, entered = new Entered()): Tool[] {
  const make = (
    name: string,
    after: (text: string) => ReturnType<Tool['execute']> | string,
    options: { deaf?: boolean; sequential?: boolean } = {},
  ) =>
    defineTool({
      name,
      description: name,
      parameters: place,
      ...(options.sequential ? { executionMode: 'sequential' as const } : {}),
      async execute({ at, text }, context) {
        entered.note(context, 'enter');
        if (at !== undefined)
          await harness.gates.pass(`${context.sessionId}/${at}`, options.deaf ? undefined : context.signal);
        entered.note(context, 'leave');
        return after(text);
      },
    });
  return [
    make('say', (text) => text),
    make('one_by_one', (text) => text, { sequential: true }),
    make('stubborn', (text) => text, { deaf: true }),
    make('stop', async (text) => ({ content: [{ type: 'text', text }], details: {}, terminate: true })),
    make('fail', (text) => {
      throw new Error(text);
    }),
  ];
}
