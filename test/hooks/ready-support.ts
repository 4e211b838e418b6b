import type { HookInstaller } from '../../src/agent/agent.ts';
import type {
  AgentHarnessEventMap,
  AgentHarnessEventName,
  AgentHarnessEventResultMap,
} from '../../src/hooks/harness-types.ts';
import { HookRegistry } from '../../src/hooks/registry.ts';

export { auditLog } from '../../src/hooks/ready/audit-log.ts';
export { contextWindow } from '../../src/hooks/ready/context-window.ts';
export { permissionGate } from '../../src/hooks/ready/permission-gate.ts';
export { rateLimit } from '../../src/hooks/ready/rate-limit.ts';
export { redactSecrets, secretRedactor } from '../../src/hooks/ready/redact-secrets.ts';

const names = [
  'context',
  'tool_call',
  'tool_result',
  'tool_update',
] as const satisfies readonly AgentHarnessEventName[];

/** The handlers that an installer installs, asked without a worker. */
export class HookRegistryOf {
  readonly end: () => void;
  private readonly registry = new HookRegistry();

  constructor(install: HookInstaller) {
    const { registry } = this;
    this.end = install({ on: registry.on.bind(registry) });
  }

  get size(): number {
    return names.reduce((sum, name) => sum + this.registry.handlers(name).length, 0);
  }

  askNow<Name extends AgentHarnessEventName>(name: Name, event: AgentHarnessEventMap[Name]): unknown {
    const [entry] = this.registry.handlers(name);
    return (entry?.handler as ((event: unknown) => unknown) | undefined)?.(event);
  }

  async ask<Name extends AgentHarnessEventName>(
    name: Name,
    event: AgentHarnessEventMap[Name],
  ): Promise<AgentHarnessEventResultMap[Name] | undefined> {
    return (await this.askNow(name, event)) as AgentHarnessEventResultMap[Name] | undefined;
  }
}
