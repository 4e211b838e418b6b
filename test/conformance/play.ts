import * as moves from './moves.ts';
import { plain, plainMessage } from './normal.ts';
import type { HookCall, SeenRequest } from './observation.ts';
import { type Action, type CallScript, callAt, callId, type Scenario, type TurnScript } from './scenario.ts';

/** Carries out what a user does, and returns once the session has it: then both sides see it at the same point. */
export type Act = (action: Action, signal: AbortSignal | undefined) => Promise<void>;

/** What tool hooks see beside the call. */
export interface HookContext {
  systemPrompt: string;
  messages: object[];
  tools?: { name: string }[];
}

/**
 * One performance of a scenario on one side: what hooks, tools and model do at each place, and what they saw. It knows
 * nothing of the side but `act`.
 */
export class Play {
  readonly scenario: Scenario;
  readonly calls: HookCall[] = [];
  readonly requests: SeenRequest[] = [];
  /** Names of what was really exercised. */
  readonly features = new Set<string>();
  run = -1;
  /** Of the last request that was prepared or made. */
  turn = -1;
  aborted = false;
  private readonly act: Act;
  private asking = false;
  private acted = false;
  private readonly polled = new Set<string>();
  private readonly entered = new Map<string, AbortSignal | undefined>();
  private readonly hasEnded = new Set<string>();
  private readonly ends = new Map<string, PromiseWithResolvers<void>>();
  private changed = Promise.withResolvers<void>();

  constructor(scenario: Scenario, act: Act) {
    this.scenario = scenario;
    this.act = act;
  }

  beginRun(run: number): void {
    this.run = run;
    this.turn = -1;
    this.asking = false;
    this.aborted = false;
  }

  /** The script of the current turn; undefined when the run goes on longer than the script. */
  get script(): TurnScript | undefined {
    return this.scenario.runs[this.run]?.turns[this.turn];
  }

  /** A call of a hook before a request, or the request itself: the first one begins a turn. */
  beginRequest(): TurnScript | undefined {
    if (!this.asking) {
      this.asking = true;
      this.acted = false;
      this.turn += 1;
    }
    return this.script;
  }

  async start(handler: number, event: { prompt: string; images?: object[]; systemPrompt: string; resources: object }) {
    const { prompt, images = [], systemPrompt, resources } = event;
    const move = this.scenario.runs[this.run]?.start[handler];
    this.note('before_agent_start', handler, { prompt, images, systemPrompt, resources });
    if (move?.throws) this.mark('throw of before_agent_start');
    const answer = moves.startAnswer(move, `start ${this.run}.${handler}`, systemPrompt);
    for (const role of move?.messages ?? []) this.mark(`before_agent_start adds a ${role} message`);
    if (answer?.systemPrompt !== undefined) this.mark('before_agent_start changes the system prompt');
    return answer;
  }

  async context<Message extends object>(
    hook: string,
    handler: number,
    messages: Message[],
  ): Promise<Message[] | undefined> {
    const script = this.beginRequest();
    const move = hook === 'convertToLlm' ? script?.context[1] : script?.context[handler];
    this.note(hook, handler, { messages: messages.map(plainMessage) }, move);
    await this.actBefore(script);
    return moves.contextAnswer(move, `${hook} ${this.place}.${handler}`, messages);
  }

  async request(handler: number, model: { provider: string; id: string }, streamOptions: object) {
    const script = this.beginRequest();
    const move = script?.request[handler];
    this.note('before_provider_request', handler, { model: `${model.provider}/${model.id}`, streamOptions }, move);
    await this.actBefore(script);
    return moves.requestAnswer(move, `before_provider_request ${this.place}.${handler}`);
  }

  async payload(handler: number, model: { provider: string; id: string }, payload: unknown) {
    const move = this.script?.payload[handler];
    this.note('before_provider_payload', handler, { model: `${model.provider}/${model.id}`, payload }, move);
    return moves.payloadAnswer(move, `before_provider_payload ${this.place}.${handler}`, payload);
  }

  async gate(hook: string, handler: number, id: string, input: object, seen: object) {
    const call = callAt(this.scenario, id);
    const move = call?.gate[handler];
    this.note(hook, handler, { input, ...seen }, move, id);
    if (handler === 0) await this.perform('gate', call?.inGate);
    return moves.gateAnswer(move, `${hook} ${id}.${handler}`, input);
  }

  async result(hook: string, handler: number, id: string, seen: object) {
    const call = callAt(this.scenario, id);
    const move = call?.result[handler];
    this.note(hook, handler, seen, move, id);
    if (handler === 0) await this.perform('result hook', call?.inResult, this.entered.get(id));
    return moves.resultAnswer(move, `${hook} ${id}.${handler}`);
  }

  async poll(queue: 'steering' | 'followUps') {
    const key = `${queue} ${this.place}`;
    const texts = this.aborted || this.polled.has(key) ? [] : (this.script?.[queue] ?? []);
    this.polled.add(key);
    this.note(
      queue === 'steering' ? 'getSteeringMessages' : 'getFollowUpMessages',
      0,
      {},
      texts.length > 0 ? 'messages' : undefined,
    );
    return texts.map(moves.userMessage);
  }

  /** One execution of a tool. In a parallel batch it waits until the calls of lower rank have ended. */
  async execute(
    id: string,
    name: string,
    params: unknown,
    signal: AbortSignal | undefined,
    onUpdate: (partial: object) => void,
  ) {
    if (signal?.aborted) throw new Error('Operation aborted');
    const call = callAt(this.scenario, id);
    this.entered.set(id, signal);
    this.tellChange();
    const batch = this.batchOf(id);
    for (const other of batch) if (call !== undefined && other.call.rank < call.rank) await this.end(other.id).promise;
    this.note('execute', 0, { name, params }, undefined, id);
    await this.perform('tool', call?.inTool, signal);
    if (signal?.aborted) throw new Error('Operation aborted');
    for (let number = 0; number < (call?.updates ?? 0); number++) {
      this.mark('tool update');
      onUpdate({ content: moves.text(`update ${number} of ${id}`), details: {} });
    }
    if (call === undefined || call.does === 'throw') {
      this.mark('tool that throws');
      throw new Error(`failed ${id}`);
    }
    if (call.terminate) this.mark('tool that terminates');
    return moves.toolResult(call, id);
  }

  /** Told by the side when `tool_execution_end` of a call stands. */
  ended(id: string): void {
    this.hasEnded.add(id);
    this.end(id).resolve();
    this.tellChange();
  }

  /** The provider has got the request and will answer. */
  answering(request: Omit<SeenRequest, 'run'>): void {
    this.requests.push({ run: this.run, ...request });
    this.asking = false;
  }

  async perform(place: string, actions: readonly Action[] = [], signal?: AbortSignal): Promise<void> {
    for (const action of actions) {
      this.mark(action.do);
      this.mark(action.do === 'steer' || action.do === 'followUp' ? `message in ${place}` : `${action.do} in ${place}`);
      if (action.do === 'abort') await this.untilBatchRuns(place);
      if (action.do === 'abort') this.aborted = true;
      await this.act(action, signal);
      if (action.do !== 'abort') continue;
      if (place !== 'tool' && place !== 'result hook') continue;
      // Each tool that runs has a signal of its own.
      for (const [id, other] of this.entered) if (!this.hasEnded.has(id)) await fired(other);
    }
  }

  mark(feature: string): void {
    this.features.add(feature);
  }

  private get place(): string {
    return `${this.run}.${this.turn}`;
  }

  private async actBefore(script: TurnScript | undefined): Promise<void> {
    if (this.acted) return;
    this.acted = true;
    await this.perform('hook before the request', script?.beforeRequest);
  }

  private note(hook: string, handler: number, seen: object, move?: string, call?: string): void {
    this.mark(`hook ${hook}`);
    if (move !== undefined && move !== 'nothing') this.mark(`${hook}: ${move}`);
    const { run, turn } = this;
    this.calls.push({
      hook,
      handler,
      run,
      turn,
      ...(call === undefined ? {} : { call }),
      seen: plain(seen),
      ...(move === undefined || move === 'nothing' ? {} : { move }),
      ...(this.aborted ? { aborted: true as const } : {}),
    });
  }

  private batchOf(id: string): { id: string; call: CallScript }[] {
    const [run = 0, turn = 0] = id.slice(1).split('.').map(Number);
    const calls = this.scenario.runs[run]?.turns[turn]?.calls ?? [];
    return calls.map((call, index) => ({ id: callId(run, turn, index), call }));
  }

  /** An abort inside a batch hits every call that will run: each has been entered, or has ended without that. */
  private async untilBatchRuns(place: string): Promise<void> {
    const running = [...this.entered.keys()].at(-1);
    if ((place !== 'tool' && place !== 'result hook') || running === undefined || this.isSequential(running)) return;
    const batch = this.batchOf(running);
    while (!batch.every(({ id }) => this.entered.has(id) || this.hasEnded.has(id))) await this.changed.promise;
  }

  private isSequential(id: string): boolean {
    const { setup } = this.scenario;
    return (
      (setup.layer === 'loop' && setup.toolExecution === 'sequential') ||
      this.batchOf(id).some(({ call }) => call.tool === 'one_by_one')
    );
  }

  private end(id: string): PromiseWithResolvers<void> {
    const known = this.ends.get(id) ?? Promise.withResolvers<void>();
    this.ends.set(id, known);
    return known;
  }

  private tellChange(): void {
    this.changed.resolve();
    this.changed = Promise.withResolvers();
  }
}

export function fired(signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    if (signal === undefined || signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
