import { type AssistantMessageEvent, createModels } from '@earendil-works/pi-ai';
import { afterAll, describe, expect, test } from '@jest/globals';
import { offlineProvider } from '../../examples/surveyor/offline-model.ts';
import { makeBench, removeFolders } from './folders.ts';

afterAll(removeFolders);

function stream(pieceDelayMs: number, signal?: AbortSignal) {
  const models = createModels();
  models.setProvider(offlineProvider({ pieceDelayMs }));
  const { tools } = makeBench({ 'a.txt': 'a' });
  const messages = [{ role: 'user' as const, content: 'Survey this folder', timestamp: 0 }];
  const declared = tools.map(({ name, description, parameters }) => ({ name, description, parameters }));
  return models.streamSimple(
    models.getModel('offline', 'surveyor')!,
    { messages, tools: declared },
    signal ? { signal } : {},
  );
}

async function collect(events: AsyncIterable<AssistantMessageEvent>): Promise<AssistantMessageEvent[]> {
  const all: AssistantMessageEvent[] = [];
  for await (const event of events) all.push(event);
  return all;
}

describe('the offline provider', () => {
  test('is configured without any key', async () => {
    const models = createModels();
    models.setProvider(offlineProvider());
    await expect(models.checkAuth('offline')).resolves.toMatchObject({ source: 'no key needed' });
  });

  test('streams text and tool calls in the order of the protocol', async () => {
    const events = await collect(stream(0));
    const order = events.map((event) => event.type).filter((type, index, types) => type !== types[index - 1]);
    expect(order).toEqual([
      'start',
      'text_start',
      'text_delta',
      'text_end',
      'toolcall_start',
      'toolcall_delta',
      'toolcall_end',
      'done',
    ]);
    const end = events.at(-1);
    if (end?.type !== 'done') throw new Error('no end');
    expect(end.message).toMatchObject({ stopReason: 'toolUse', provider: 'offline', model: 'surveyor' });
    const text = events.map((event) => (event.type === 'text_delta' ? event.delta : '')).join('');
    expect(end.message.content[0]).toEqual({ type: 'text', text });
    const args = events.map((event) => (event.type === 'toolcall_delta' ? event.delta : '')).join('');
    expect(end.message.content[1]).toMatchObject({ type: 'toolCall', name: 'list', arguments: JSON.parse(args) });
  });

  test('estimates its tokens, which cost nothing', async () => {
    const message = await stream(0).result();
    expect(message.usage.input).toBeGreaterThan(100);
    expect(message.usage.output).toBeGreaterThan(10);
    expect(message.usage.totalTokens).toBe(message.usage.input + message.usage.output);
    expect(message.usage.cost.total).toBe(0);
  });

  test('an abort ends the stream at once and keeps what was said', async () => {
    const abort = new AbortController();
    const events: AssistantMessageEvent[] = [];
    for await (const event of stream(20, abort.signal)) {
      events.push(event);
      if (event.type === 'text_delta') abort.abort();
    }
    const end = events.at(-1);
    if (end?.type !== 'error') throw new Error('no error event');
    expect(end.reason).toBe('aborted');
    expect(end.error.stopReason).toBe('aborted');
    expect(events.filter((event) => event.type === 'text_delta')).toHaveLength(1);
    expect(end.error.content).toEqual([{ type: 'text', text: 'I am the off' }]);
  });

  test('an abort that came before leaves nothing', async () => {
    const message = await stream(0, AbortSignal.abort()).result();
    expect(message).toMatchObject({ stopReason: 'aborted', content: [] });
  });
});
