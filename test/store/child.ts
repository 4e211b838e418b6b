// A second process on the same store: `child.ts PATH SESSION COUNT`. Prints the number of each commit that it was
// promised. It ends by itself when its store has nothing to do, so it also shows that an idle store keeps nobody alive.

import type { NewRecord } from '../../src/common/events.ts';
import { openStore } from '../../src/store/index.ts';

const [path = '', sessionId = '', count = '0', prefix = 'c'] = process.argv.slice(2);
const store = await openStore({ path });
await store.openSession({
  sessionId,
  workflowRunId: 'w1',
  defaults: { agent: 'a', model: 'p/m', thinkingLevel: 'off', activeTools: null },
});

for (let number = 0; number < Number(count); number++) {
  const records = [0, 1, 2].map(
    (part): NewRecord => ({
      kind: 'entry',
      entry: {
        type: 'message',
        id: `${prefix}${number}/${part}`,
        timestamp: '2026-01-01T00:00:00.000Z',
        message: { role: 'user', content: 'x'.repeat(1000), timestamp: 1 },
      },
    }),
  );
  const effect = `${prefix}${number}`;
  await store.commit({ sessionId, workflowRunId: 'w1', effect, attempt: 1 }, { records, result: number });
  process.stdout.write(`${number}\n`);
}
