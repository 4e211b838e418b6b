import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, expect, test } from '@jest/globals';

// Own roles by declaration merging, as an application writes it: in a project of its own, through the package's entry.

const root = fileURLToPath(new URL('../..', import.meta.url));
const project = mkdtempSync(join(tmpdir(), 'everturn-test-'));
afterAll(() => rmSync(project, { recursive: true, force: true }));

const code = `
import { type AgentMessage, type ContextEvent, defineAgent, type SessionTreeEntry } from 'everturn';

declare module 'everturn' {
  interface CustomAgentMessages {
    notice: { role: 'notice'; level: 'info' | 'error'; timestamp: number };
  }
}

export const notice: AgentMessage = { role: 'notice', level: 'info', timestamp: 0 };
// @ts-expect-error a role that nobody declared
export const other: AgentMessage = { role: 'other', timestamp: 0 };
// @ts-expect-error a level that the role does not have
export const wrong: AgentMessage = { role: 'notice', level: 'loud', timestamp: 0 };

const level = (message: AgentMessage) => (message.role === 'notice' ? message.level : undefined);
export const agent = defineAgent({
  name: 'a',
  model: 'a/b',
  convertToLlm: (messages) => messages.flatMap((message) => (message.role === 'notice' ? [] : [message])),
});
agent.on('context', ({ messages }: ContextEvent) => ({ messages: messages.filter((message) => level(message) !== 'error') }));
export const levels = (entry: SessionTreeEntry) => (entry.type === 'message' ? level(entry.message) : undefined);
`;

test('roles that an application declares are roles of AgentMessage in hooks, entries and convertToLlm', async () => {
  mkdirSync(join(project, 'node_modules'));
  symlinkSync(root, join(project, 'node_modules/everturn'), 'junction');
  writeFileSync(join(project, 'package.json'), '{"type":"module"}');
  writeFileSync(join(project, 'app.ts'), code);
  const compilerOptions = {
    ...{
      target: 'es2024',
      lib: ['es2024', 'esnext.disposable'],
      module: 'nodenext',
      strict: true,
      noEmit: true,
      skipLibCheck: true,
    },
    ...{ types: ['node'], typeRoots: [join(root, 'node_modules/@types')], customConditions: ['everturn-source'] },
    ...{ allowImportingTsExtensions: true, exactOptionalPropertyTypes: true },
  };
  writeFileSync(join(project, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['app.ts'] }));
  const tsc = join(root, 'node_modules/typescript/bin/tsc');
  const { stdout } = await promisify(execFile)(process.execPath, [tsc, '-p', project]).catch(
    (error: { stdout: string }) => error,
  );
  expect(stdout).toBe('');
});
