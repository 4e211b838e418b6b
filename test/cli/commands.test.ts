import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { waitFor } from '../support/wait-for.ts';
import { objects, Project } from './harness.ts';

const png = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
);
let project: Project;

beforeAll(async () => {
  project = new Project();
  await project.startWorker();
});

afterAll(() => project.remove());

const isWaiting = async (file: string) => {
  const { existsSync } = await import('node:fs');
  await waitFor(() => existsSync(project.path(`${file}.waiting`)), { what: `${file}.waiting` });
};

test('run shows the transcript of a run that a worker process carries out, and exits with 0', async () => {
  const { code, stdout, stderr } = await project.run(['run', 'add', '--agent', 'helper', '--session', 'sum']);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const lines = stdout.split('\n').filter((line) => !/^run \S*-/.test(line));
  expect(lines).toEqual([
    'session sum',
    'turn 1',
    'user add',
    '  Let me add.',
    '  → add a=1 b=2',
    '  ← add 3',
    'turn 2',
    '  The tool says 3.',
    'run done',
    expect.stringMatching(/^2 turns, \d+ tokens; session sum$/),
    '',
  ]);
});

test('with --json run writes the prompt, each event and the result, one object a line', async () => {
  const run = project.start(['run', 'hold gate0', '--agent', 'helper', '--session', 'lines', '--json']);
  // What is complete before it is read comes whole, without deltas.
  await run.until('"text_delta"');
  project.write('gate0', '');
  const { code, stdout, stderr } = await run.ended;
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const all = objects(stdout);
  const { runId } = all[0] ?? {};
  expect(all[0]).toEqual({ type: 'prompt', sessionId: 'lines', runId: expect.any(String), became: 'opened' });
  const result = { type: 'result', sessionId: 'lines', runId, status: 'done', text: 'Held words.', turns: 1 };
  expect(all.at(-1)).toMatchObject(result);
  const logged = all.filter((event) => event.offset !== undefined).map((event) => event.type);
  expect(logged).toEqual(expect.arrayContaining(['agent_start', 'turn_start', 'message_end', 'turn_end', 'agent_end']));
  expect(logged.at(-1)).toBe('settled');
  const updates = all.filter((event) => event.type === 'message_update') as { delta: { delta?: string } }[];
  expect(updates.map(({ delta }) => delta.delta ?? '').join('')).toBe('Held words.');
  // The message so far would stand in every one of them.
  expect(updates.filter((event) => 'message' in event)).toEqual([]);
});

test('a session goes on with its own agent, and --model changes its model', async () => {
  await project.run(['run', 'one', '--agent', 'helper', '--session', 'talk']);
  const { code, stdout } = await project.run(['run', 'two', '--session', 'talk', '--model', 'scripted/other']);
  expect(code).toBe(0);
  expect(stdout).toContain('You said: two (other)');
  expect(stdout).toContain('model is now scripted/other');
  expect(stdout).not.toContain('user one');
  const again = await project.run(['run', 'three', '--session', 'talk', '--agent', 'second']);
  expect(again).toMatchObject({ code: 2, stderr: expect.stringContaining('belongs to the agent "helper"') });
});

test('images go with the prompt, whatever their names say', async () => {
  project.write('picture.txt', png);
  const { stdout } = await project.run([
    'run',
    'look',
    '--agent',
    'helper',
    '--image',
    'picture.txt',
    '--image',
    'picture.txt',
  ]);
  expect(stdout).toContain('user look [2 images]');
  expect(stdout).toContain('You said: look with 2 images');
});

test('a run that ends in an error gives exit code 1, and its error', async () => {
  const { code, stdout, stderr } = await project.run(['run', 'fail', '--agent', 'helper']);
  expect({ code, stderr }).toEqual({ code: 1, stderr: '' });
  expect(stdout).toContain('run ended in an error: invalid_request: no (model_failed)');
  const json = await project.run(['run', 'fail', '--agent', 'helper', '--json']);
  expect(json.code).toBe(1);
  expect(objects(json.stdout).at(-1)).toMatchObject({
    type: 'result',
    status: 'error',
    error: { code: 'model_failed' },
  });
});

test('a prompt that is sent again with its run id shows the same run', async () => {
  const args = ['run', 'once', '--agent', 'helper', '--session', 'repeat', '--run-id', 'r1', '--json'];
  const first = objects((await project.run(args)).stdout);
  const again = objects((await project.run(args)).stdout);
  expect(again.at(-1)).toEqual(first.at(-1));
  expect(again.map((event) => event.type)).toContain('agent_start');
  const runs = await (await project.openStore()).listRuns('repeat');
  expect(runs.map((run) => run.runId)).toEqual(['r1']);
});

test('--detach opens the run and tells its ids; show --follow shows it until Ctrl-C', async () => {
  const opened = await project.run([
    'run',
    'hold gate1',
    '--agent',
    'helper',
    '--session',
    'away',
    '--run-id',
    'r1',
    '--detach',
  ]);
  expect(opened).toEqual({ code: 0, stdout: 'session away\nrun r1\n', stderr: '' });
  const json = await project.run(['run', 'x', '--session', 'away', '--on-busy', 'followUp', '--detach', '--json']);
  expect(objects(json.stdout)).toEqual([{ type: 'prompt', sessionId: 'away', runId: 'r1', became: 'queued' }]);
  const follower = project.start(['show', 'away', '--follow']);
  await follower.until('Held');
  project.write('gate1', '');
  await follower.until('You said: x');
  await follower.until('run done');
  follower.signal('SIGINT');
  expect(await follower.ended).toMatchObject({ code: 0, stderr: '' });
});

test('steer and follow-up reach the run that another process shows, in their order', async () => {
  const shown = project.start(['run', 'hold gate2', '--agent', 'helper', '--session', 'busy']);
  await isWaiting('gate2');
  const busy = await project.run(['run', 'me too', '--session', 'busy', '--json']);
  expect(busy.code).toBe(2);
  expect(JSON.parse(busy.stderr)).toMatchObject({ error: { code: 'busy' } });
  const followUp = await project.run(['follow-up', 'busy', 'at the end', '--json']);
  expect(objects(followUp.stdout)).toEqual([{ sessionId: 'busy', queue: 'followUp', runId: expect.any(String) }]);
  const steer = await project.run(['steer', 'busy', 'before that']);
  expect(steer).toMatchObject({ code: 0, stdout: expect.stringMatching(/^steering sent: for run \S+\n$/) });
  await shown.until('steering waits: “before that”');
  await shown.until('follow-up waits: “at the end”');
  project.write('gate2', '');
  const { code, stdout } = await shown.ended;
  expect(code).toBe(0);
  const replies = stdout.split('\n').filter((line) => /^ {2}(Held|You said)/.test(line));
  expect(replies.at(-2)).toBe('  You said: before that');
  expect(replies.at(-1)).toBe('  You said: at the end');
});

test('steering an idle session begins a run', async () => {
  await project.run(['run', 'hello', '--agent', 'helper', '--session', 'idle']);
  const { stdout } = await project.run(['steer', 'idle', 'wake up']);
  expect(stdout).toBe('steering sent: the session was idle, so it begins a run\n');
  await waitFor(async () => (await project.run(['show', 'idle'])).stdout.includes('You said: wake up'), {
    what: 'the run',
  });
});

test('--on-busy joins the run that is going on, and shows it to its end', async () => {
  const shown = project.start(['run', 'hold gate3', '--agent', 'helper', '--session', 'join']);
  await isWaiting('gate3');
  const joined = project.start(['run', 'and this', '--session', 'join', '--on-busy', 'steer']);
  await joined.until('steered into run');
  project.write('gate3', '');
  const [first, second] = await Promise.all([shown.ended, joined.ended]);
  expect([first, second]).toMatchObject([
    { code: 0, stderr: '' },
    { code: 0, stderr: '' },
  ]);
  expect(second.stdout).toContain('You said: and this');
});

test('two processes run two sessions at once, each with its own transcript', async () => {
  const both = ['red', 'blue'].map((word) =>
    project.run(['run', word, '--agent', 'helper', '--session', `at-once-${word}`]),
  );
  const [red, blue] = await Promise.all(both);
  expect([red, blue]).toMatchObject([
    { code: 0, stderr: '' },
    { code: 0, stderr: '' },
  ]);
  expect(red?.stdout).toContain('You said: red');
  expect(red?.stdout).not.toContain('blue');
  expect(blue?.stdout).toContain('You said: blue');
});

test('sessions lists what the store has, the last used first', async () => {
  await project.run(['run', 'hello', '--agent', 'helper', '--session', 'listed']);
  const text = await project.run(['sessions']);
  const [head = '', first = ''] = text.stdout.split('\n');
  expect(head.trim().split(/\s{2,}/)).toEqual(['session', 'agent', 'state', 'runs', 'last used', 'usage', 'model']);
  expect(first).toMatch(
    /^listed {2,}helper {2,}idle {2,}1 {2,}\d{4}-\d\d-\d\d \d\d:\d\d:\d\d {2,}\d+ tokens {2,}scripted\/main$/,
  );
  const json = objects((await project.run(['sessions', '--limit', '1', '--json'])).stdout);
  expect(json).toEqual([
    expect.objectContaining({
      sessionId: 'listed',
      agent: 'helper',
      model: 'scripted/main',
      runs: 1,
      length: expect.any(Number),
    }),
  ]);
});

test('show needs no server, begins where it is told, and gives the same lines as run did', async () => {
  const ran = await project.run(['run', 'add', '--agent', 'helper', '--session', 'shown']);
  const nowhere = { TEMPORAL_ADDRESS: '127.0.0.1:1' };
  const shown = await project.run(['show', 'shown'], nowhere);
  expect(shown.stdout.split('\n').slice(1, -1)).toEqual(ran.stdout.split('\n').slice(1, -2));
  const events = objects((await project.run(['show', 'shown', '--json'], nowhere)).stdout);
  const from = Number(events.at(-2)?.offset);
  const tail = objects((await project.run(['show', 'shown', '--json', '--from', String(from)], nowhere)).stdout);
  expect(tail.map((event) => event.offset)).toEqual(events.slice(-2).map((event) => event.offset));
});

test('show --follow from the end of the log repeats nothing that is complete', async () => {
  await project.run(['run', 'add', '--agent', 'helper', '--session', 'ended']);
  const events = objects((await project.run(['show', 'ended', '--json'])).stdout);
  const follower = project.start([
    'show',
    'ended',
    '--follow',
    '--json',
    '--from',
    String(Number(events.at(-1)?.offset) + 1),
  ]);
  const next = await project.run(['run', 'hello', '--session', 'ended', '--json']);
  await follower.until('"settled"');
  follower.signal('SIGINT');
  const { stdout } = await follower.ended;
  const runs = new Set(objects(stdout).map((event) => event.runId));
  expect([...runs].filter(Boolean)).toEqual([objects(next.stdout)[0]?.runId]);
});

test('verify says that a log is as it was written, and finds one byte that is not', async () => {
  await project.run(['run', 'hello', '--agent', 'helper', '--session', 'checked']);
  const good = await project.run(['verify', 'checked', '--json']);
  expect(good.code).toBe(0);
  expect(objects(good.stdout)).toEqual([{ sessionId: 'checked', ok: true, length: expect.any(Number) }]);
  expect((await project.run(['verify', 'checked'])).stdout).toMatch(
    /^checked: \d+ records, all as they were written; head [0-9a-f]{64}\n$/,
  );
  const database = new DatabaseSync(join(project.store, 'everturn.db'));
  database.exec(`update records set body = replace(body, 'hello', 'hallo') where session_id = 'checked'`);
  database.close();
  const bad = await project.run(['verify', 'checked']);
  expect(bad).toMatchObject({
    code: 1,
    stderr: '',
    stdout: expect.stringMatching(/^checked: not as it was written from offset \d+ on: /),
  });
  const json = await project.run(['verify', 'checked', '--json']);
  expect(objects(json.stdout)).toEqual([
    { sessionId: 'checked', ok: false, offset: expect.any(Number), reason: expect.any(String) },
  ]);
});

test('a reader that goes away ends the command quietly, and the run goes on', async () => {
  const piped = project.startPiped(['run', 'hold gate4', '--agent', 'helper', '--session', 'piped'], 'head -n 1');
  await isWaiting('gate4');
  project.write('gate4', '');
  expect(await piped.ended).toEqual({ code: 0, stdout: 'session piped\n', stderr: '' });
  const store = await project.openStore();
  await waitFor(async () => (await store.listRuns('piped')).at(0)?.status === 'done', { what: 'the end of the run' });
});
