import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { openStore } from '../../src/store/index.ts';
import { type Ended, Project } from './harness.ts';

let project: Project;
const nowhere = { TEMPORAL_ADDRESS: '127.0.0.1:1' };

beforeAll(async () => {
  project = new Project();
  await project.startWorker();
  await project.run(['run', 'hello', '--agent', 'helper', '--session', 'known']);
});

afterAll(() => project.remove());

/** One line on stderr, nothing on stdout, exit code 2. Returns the line. */
function refusal({ code, stdout, stderr }: Ended): string {
  expect({ code, stdout, lines: stderr.split('\n').length }).toEqual({ code: 2, stdout: '', lines: 2 });
  return stderr.trimEnd();
}

const commands: [what: string, args: string[], code: string, message: RegExp][] = [
  ['an unknown command', ['runn', 'x'], 'invalid_argument', /unknown command 'runn'.*Did you mean run\?/],
  ['an unknown option', ['sessions', '--bogus'], 'invalid_argument', /unknown option '--bogus'/],
  ['a missing argument', ['steer', 'known'], 'invalid_argument', /missing required argument 'text'/],
  ['too many arguments', ['show', 'known', 'x'], 'invalid_argument', /too many arguments/],
  ['a bad session id', ['show', 'a/b'], 'invalid_argument', /"a\/b" is no session id/],
  ['a bad run id', ['abort', 'known', '--run', '/'], 'invalid_argument', /"\/" is no run id/],
  ['a bad agent name', ['run', 'x', '--agent', 'a b', '--session', 'new'], 'invalid_argument', /agent: must be/],
  [
    'a bad model reference',
    ['run', 'x', '--agent', 'helper', '--model', 'gpt'],
    'invalid_argument',
    /provider\/model-id/,
  ],
  [
    'a bad choice',
    ['run', 'x', '--on-busy', 'wait'],
    'invalid_argument',
    /Allowed choices are reject, steer, followUp, interrupt/,
  ],
  ['a bad offset', ['show', 'known', '--from', '-1'], 'invalid_argument', /"-1" is no whole number/],
  ['a bad port', ['dev', '--port', '70000'], 'invalid_argument', /"70000" is no port/],
  ['a bad address', ['steer', 'known', 'x', '--address', 'nonsense'], 'invalid_argument', /write host:port/],
  ['a bad time', ['run', 'x', '--wait', '0'], 'invalid_argument', /"0" is no number of seconds/],
  ['an empty prompt', ['run', ' ', '--agent', 'helper'], 'invalid_argument', /prompt is empty/],
  ['an empty message', ['steer', 'known', ''], 'invalid_argument', /message is empty/],
  ['a new session without an agent', ['run', 'x'], 'invalid_argument', /name it with --agent/],
  ['an unknown session in show', ['show', 'nobody'], 'not_found', /There is no session "nobody"/],
  ['an unknown session in steer', ['steer', 'nobody', 'x'], 'not_found', /There is no session "nobody"/],
  ['an unknown session in follow-up', ['follow-up', 'nobody', 'x'], 'not_found', /There is no session "nobody"/],
  ['an unknown session in abort', ['abort', 'nobody'], 'not_found', /There is no session "nobody"/],
  ['an unknown session in verify', ['verify', 'nobody'], 'not_found', /There is no session "nobody"/],
  ['an unknown agent', ['run', 'x', '--agent', 'nobody'], 'unknown_agent', /nobody/],
  [
    'an unknown model of a new session',
    ['run', 'x', '--agent', 'helper', '--model', 'scripted/none'],
    'unknown_model',
    /has no model "none"/,
  ],
  [
    'an unknown model of a known session',
    ['run', 'x', '--session', 'known', '--model', 'scripted/none'],
    'unknown_model',
    /has no model "none"/,
  ],
  [
    'a missing image',
    ['run', 'x', '--agent', 'helper', '--image', 'none.png'],
    'not_found',
    /The image none\.png cannot be read/,
  ],
  [
    'an image that is none',
    ['run', 'x', '--agent', 'helper', '--image', 'package.json'],
    'invalid_argument',
    /package\.json is no PNG/,
  ],
  [
    'no worker',
    ['run', 'x', '--agent', 'helper', '--task-queue', 'empty', '--wait', '1'],
    'no_worker',
    /No worker on task queue "empty".*--run-id/,
  ],
  ['a missing store', ['sessions', '--store', 'nothing'], 'store_unavailable', /There is no store at nothing/],
  [
    'a store that is no path',
    ['sessions', '--store', 'postgres://me:secret@host/db'],
    'invalid_config',
    /A store on postgres is not supported yet/,
  ],
  ['a store that is none', ['sessions', '--store', 'everturn.agents.ts'], 'store', /no Everturn store/],
  ['a missing agents file', ['worker', '--agents', 'none.ts'], 'not_found', /There is no agents file none\.ts/],
  [
    'a missing workflows file',
    ['worker', '--workflows', 'none.ts'],
    'not_found',
    /There is no workflows file none\.ts/,
  ],
];

test.each(commands)('%s is one object on stderr and exit code 2 with --json', async (_what, args, code, message) => {
  const { error } = JSON.parse(refusal(await project.run([...args, '--json']))) as { error: Record<string, unknown> };
  expect(Object.keys(error)).toEqual(['code', 'message', 'details']);
  expect(error).toMatchObject({ code, message: expect.stringMatching(message) });
});

test.each(['', 'frobnicate', 'show nobody', 'worker --agents none.ts'])(
  'for people it is one line without a stack: %s',
  async (line) => {
    expect(refusal(await project.run(line.split(' ').filter(Boolean)))).toMatch(/^everturn: [^{}]+$/);
  },
);

test.each(['run x --agent helper', 'steer known x', 'abort known', 'worker'])(
  'a server that is not there is named: %s',
  async (line) => {
    expect(refusal(await project.run(line.split(' '), nowhere))).toMatch(
      /No Temporal server answers at 127\.0\.0\.1:1 /,
    );
  },
);

test('a store that the workers do not use is noticed, and the run goes on in theirs', async () => {
  const other = await openStore({ path: project.path('other') });
  await other.close();
  const ended = await project.run(['run', 'x', '--agent', 'helper', '--session', 'elsewhere', '--store', 'other']);
  expect(refusal(ended)).toMatch(/keep session "elsewhere" in another store than other/);
  expect((await project.run(['show', 'elsewhere'])).code).toBe(0);
});

const files: [what: string, source: string, message: RegExp][] = [
  ['exports no agents', 'export const nothing = 1;', /exports no agents. Export what defineAgent returns/],
  [
    'has a list with something else in it',
    'export const agents = [{ name: 1 }];',
    /agents\[0\] was not made with defineAgent/,
  ],
  [
    'has wrong providers',
    `import { defineAgent } from 'everturn';\nexport const a = defineAgent({ name: 'a', model: 'x/y' });\nexport const providers = {};`,
    /providers must be a list/,
  ],
  ['is no code', 'export const = ;', /cannot be loaded/],
  ['throws', `throw new Error('two\\nlines');`, /cannot be loaded: two lines/],
  ['imports what is not there', `import 'nothing-there';`, /cannot be loaded: Cannot find package 'nothing-there'/],
  [
    'has an agent with a wrong option',
    `import { defineAgent } from 'everturn';\nexport const a = defineAgent({ name: 'a', model: 'x/y', toolz: [] });`,
    /Agent "a": toolz/,
  ],
  [
    'has two agents of one name',
    `import { defineAgent } from 'everturn';\nexport const a = defineAgent({ name: 'a', model: 'x/y' });\nexport const b = defineAgent({ name: 'a', model: 'x/y' });`,
    /two agents are called "a"/,
  ],
];

test.each(files)('an agents file that %s is refused in one line', async (_what, source, message) => {
  project.write('bad.ts', source);
  expect(refusal(await project.run(['worker', '--agents', 'bad.ts']))).toMatch(message);
});

test('a workflows file that cannot be bundled is refused in one line', async () => {
  project.write('bad-workflows.ts', `import 'node:fs';\nexport * from 'everturn/workflows';`);
  expect(refusal(await project.run(['worker', '--workflows', 'bad-workflows.ts']))).toMatch(
    /bad-workflows\.ts cannot be bundled/,
  );
});

test('EVERTURN_DEBUG=1 adds the stack', async () => {
  const { code, stderr } = await project.run(['show', 'nobody'], { EVERTURN_DEBUG: '1' });
  expect(code).toBe(2);
  expect(stderr).toMatch(/\n\s+at .*session-client/);
});
