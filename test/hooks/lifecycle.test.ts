import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { formatPromptTemplateInvocation, formatSkillInvocation } from '@earendil-works/pi-agent-core';
import { describe, expect, test } from '@jest/globals';
import type { SessionEvent } from '../../src/common/events.ts';
import { parseIncoming } from '../../src/common/messages.ts';
import { type Harness, type Talk, testAgent, useHarness } from '../support/harness.ts';
import { loopTools } from '../support/loop-tools.ts';
import { waitFor } from '../support/wait-for.ts';
import { image, Spies, spiedAgent } from './spies.ts';

// Hooks while workers stop, deploy and answer clients.

const spies = new Spies();
const secret = 'header-value-that-no-store-may-hold';
const resources = {
  skills: [
    {
      name: 'tidy',
      description: 'Tidies up',
      content: 'Tidy the room.',
      filePath: '/skills/tidy/SKILL.md',
      disableModelInvocation: true,
    },
  ],
  // biome-ignore lint/suspicious/noTemplateCurlyInString: a placeholder of the template
  promptTemplates: [{ name: 'greet', content: 'Hello $1, meet ${@:2}. $ARGUMENTS | $@ | $9.' }],
};
/** What a deploy has changed: the agents of the worker that starts next. */
let bare = false;
const agents = () => [
  ...(bare ? [testAgent('gated', { tools: loopTools(harness) })] : [spiedAgent('gated', harness, spies)]),
  spiedAgent('spied-on', harness, spies, { resources, streamOptions: { headers: { 'x-static': `${secret}-static` } } }),
  spiedAgent('near', harness, spies, { settings: { delayMs: 1, local: true } }),
  spiedAgent('half-near', harness, spies, { settings: { delayMs: 1 } }),
];
const harness: Harness = useHarness({ agents, worker: { graceMs: 200 } });

const script = [{ calls: [{ name: 'say', id: 'a', args: { text: 'hi' } }] }, { text: 'Done' }];

/** Ends the worker in good order, and starts the next one. */
async function replaceWorker(): Promise<void> {
  const ending = harness.endings[0]!();
  harness.endings[0] = await harness.startWorker({ agents: agents() });
  await ending;
}

describe('a worker that shuts down', () => {
  test.each([
    'before_agent_start#1',
    'before_provider_request#0',
    'transformContext',
    'convertToLlm',
    'tool_call#1',
    'getSteeringMessages',
  ])(
    'fires the signal of a hook that it is in, and the next worker asks that hook again, and none before it: %s',
    async (hook) => {
      const talk = harness.talk('spied-on', script);
      talk.accepted.push('Go');
      const signals: (AbortSignal | undefined)[] = [];
      spies.plan(talk, hook, async () => {
        const { agentSignal } = spies.of(talk).at(-1)!;
        signals.push(agentSignal);
        if (signals.length === 1) await harness.gates.pass(`${talk.sessionId}/in`, agentSignal);
      });
      await talk.session.prompt('Go', { runId: 'r' });
      await talk.reached('in');
      await replaceWorker();
      expect(await talk.session.result('r')).toMatchObject({ status: 'done', text: 'Done' });
      expect(signals[0]?.aborted).toBe(true);
      const names = spies.names(talk);
      const interrupted = names.indexOf(hook);
      expect(names[interrupted + 1]).toBe(hook);
      const once = names.toSpliced(interrupted, 1);
      // What sets no headers is asked once, whatever happens behind it.
      expect(once.filter((name) => name === 'before_agent_start#0')).toHaveLength(1);
      expect(once.filter((name) => name === 'before_provider_request#0')).toHaveLength(2);
      expect(once.filter((name) => name === 'tool_call#0')).toHaveLength(1);
      expect(once.filter((name) => name === 'tool_result#1')).toHaveLength(1);
    },
  );
});

describe('a worker without a gate that the session was opened with', () => {
  const deploy = async (plan: (talk: Talk) => string) => {
    const talk = harness.talk('gated', script);
    const hook = plan(talk);
    spies.plan(talk, hook, () => harness.gates.pass(`${talk.sessionId}/in`, spies.of(talk).at(-1)?.agentSignal));
    await talk.session.prompt('Go', { runId: 'r' });
    await talk.reached('in');
    bare = true;
    await replaceWorker();
    bare = false;
    return talk;
  };

  test('lets no tool call through', async () => {
    const talk = await deploy(() => 'tool_call#0');
    expect(await talk.session.result('r')).toMatchObject({ status: 'done' });
    expect(talk.asked[1]?.at(-1)).toBe(
      'result of say (error): A gate of this agent is not available on this worker, so the call was not let through.',
    );
    await replaceWorker();
  });

  test('lets no run begin', async () => {
    const talk = await deploy(() => 'before_agent_start#0');
    await expect(talk.session.result('r')).rejects.toMatchObject({
      code: 'hook',
      details: { hook: 'before_agent_start' },
    });
    expect(talk.requests).toEqual([]);
    await replaceWorker();
  });
});

test.each([
  ['near', []],
  ['half-near', ['beforeAgentStart', 'beforeToolCall']],
])('gates are activities of the task queue, unless all of their handlers are local (%s)', async (agent, gates) => {
  const talk = harness.talk(agent, script);
  await talk.session.run('Go', { runId: 'r' });
  const { events } = await talk.workflow.fetchHistory();
  const activities = (events ?? []).flatMap(
    (event) => event.activityTaskScheduledEventAttributes?.activityType?.name ?? [],
  );
  expect(activities.filter((name) => name === 'beforeAgentStart' || name === 'beforeToolCall')).toEqual(gates);
});

test('a session whose agent has no hooks has no activity for them', async () => {
  bare = true;
  await replaceWorker();
  bare = false;
  const talk = harness.talk('gated', script);
  await talk.session.run('Go', { runId: 'r' });
  const { events } = await talk.workflow.fetchHistory();
  const activities = (events ?? []).flatMap(
    (event) => event.activityTaskScheduledEventAttributes?.activityType?.name ?? [],
  );
  expect(activities).toEqual(['openSession', 'streamAssistantResponse', 'executeTool', 'streamAssistantResponse']);
  await replaceWorker();
});

test('values of headers reach the provider, and neither the files of the store nor the history of the workflow', async () => {
  const talk = harness.talk('spied-on', script);
  spies.plan(talk, 'before_provider_request#0', () => ({
    streamOptions: { headers: { authorization: `${secret}-dynamic` } },
  }));
  await talk.session.run('Go', { runId: 'r' });
  expect(talk.requests[0]?.options.headers).toMatchObject({
    authorization: `${secret}-dynamic`,
    'x-static': `${secret}-static`,
  });
  const { events } = await talk.workflow.fetchHistory();
  expect(JSON.stringify(events)).not.toContain(Buffer.from(secret).toString('base64').slice(4, -4));
  const files = readdirSync(harness.folder, { recursive: true, withFileTypes: true }).filter((file) => file.isFile());
  const bytes = files.map((file) => readFileSync(join(file.parentPath, file.name)).toString('latin1')).join('');
  expect(bytes).toContain('x-static');
  expect(bytes).not.toContain(secret);
});

describe('prompts by name', () => {
  test('a skill stands in the block of pi, with instructions behind it', async () => {
    const talk = harness.talk('spied-on', [{ text: 'Done' }]);
    const { runId } = await talk.session.skill('tidy', 'Under the bed too.');
    await talk.session.result(runId);
    const prompt =
      '<skill name="tidy" location="/skills/tidy/SKILL.md">\nReferences are relative to /skills/tidy.\n\nTidy the room.\n</skill>\n\nUnder the bed too.';
    expect(formatSkillInvocation(resources.skills[0]!, 'Under the bed too.')).toBe(prompt);
    expect(talk.asked[0]).toEqual([`user: ${prompt}`]);
    expect(spies.of(talk)[0]?.args[0]).toMatchObject({ type: 'before_agent_start', prompt, resources });
  });

  test('a template is filled in the order of pi', async () => {
    const talk = harness.talk('spied-on', [{ text: 'Done' }]);
    const { runId } = await talk.session.promptFromTemplate('greet', ['Ada', 'Bob', '$@']);
    await talk.session.result(runId);
    const [template] = resources.promptTemplates;
    expect(talk.asked[0]).toEqual([`user: ${formatPromptTemplateInvocation(template!, ['Ada', 'Bob', '$@'])}`]);
    expect(talk.asked[0]).toEqual(['user: Hello Ada, meet Bob Ada Bob $@. Ada Bob Ada Bob $@ | Ada Bob $@ | .']);
  });

  test.each([
    ['Unknown skill: tidier', (talk: Talk) => talk.session.skill('tidier')],
    ['Unknown prompt template: bye', (talk: Talk) => talk.session.promptFromTemplate('bye')],
  ])('%s is refused, and no run is opened', async (message, prompt) => {
    const talk = harness.talk('spied-on');
    await expect(prompt(talk)).rejects.toMatchObject({ code: 'invalid_argument', message });
    expect(spies.of(talk)).toEqual([]);
  });
});

test('subscribers get the events of observation, and those of hooks are not theirs', async () => {
  const talk = harness.talk('spied-on', [{ ...script[0]!, gate: 'first' }, script[1]!]);
  const heard: SessionEvent[] = [];
  await talk.session.setThinkingLevel('low');
  const end = talk.session.subscribe((event) => void heard.push(event), { from: 0 });
  const { runId } = await talk.session.prompt('Go', { runId: 'r', images: [image] });
  await talk.reached('first');
  await talk.session.setModel('scripted/other');
  await talk.session.setActiveTools(['say']);
  talk.open('first');
  await talk.session.result(runId);
  await waitFor(() => heard.some(({ type }) => type === 'settled'), { what: 'settled' });
  end();
  const of = (type: SessionEvent['type']) => heard.filter((event) => event.type === type);
  expect(of('save_point')).toMatchObject([{ hadPendingMutations: true }, { hadPendingMutations: false }]);
  expect(of('model_update')).toMatchObject([{ model: 'scripted/other', source: 'set' }]);
  expect(of('thinking_level_update')).toMatchObject([{ level: 'low' }]);
  expect(of('tools_update')).toMatchObject([{ activeToolNames: ['say'], source: 'set' }]);
  expect(of('settled')).toMatchObject([{ nextTurnCount: 0 }]);
  expect(of('hook').length).toBeGreaterThan(10);
  const names: string[] = [
    'before_agent_start',
    'context',
    'tool_call',
    'tool_result',
    'before_provider_request',
    'before_provider_payload',
  ];
  expect(heard.filter(({ type }) => names.includes(type))).toEqual([]);
});

test('messages of own roles live in the transcript, are seen by hooks, and by default not by the model', async () => {
  const own = parseIncoming({ role: 'notice', level: 'info', lines: ['a', 'b'] }, 7);
  expect(own).toEqual({ role: 'notice', level: 'info', lines: ['a', 'b'], timestamp: 7 });
  bare = true;
  await replaceWorker();
  bare = false;
  const talk = harness.talk('gated', [{ text: 'Done' }]);
  await talk.session.nextTurn(own as never);
  await talk.session.run('Go', { runId: 'r' });
  expect(talk.asked).toEqual([['user: Go']]);
  expect(await talk.transcript()).toEqual(['notice: ', 'user: Go', 'assistant: Done']);
  await replaceWorker();
  const hooked = harness.talk('near', [{ text: 'Done' }]);
  spies.plan(hooked, 'convertToLlm', (messages: { role: string }[]) =>
    messages.filter(({ role }) => role !== 'notice'),
  );
  await hooked.session.nextTurn(own as never);
  await hooked.session.run('Go', { runId: 'r' });
  expect(spies.of(hooked).find(({ hook }) => hook === 'context#0')?.args[0]).toMatchObject({
    messages: [own, { role: 'user' }],
  });
  expect(hooked.asked).toEqual([['user: Go']]);
});
