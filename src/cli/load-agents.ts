import { existsSync, statSync } from 'node:fs';
import { basename, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Provider } from '@earendil-works/pi-ai';
import type { Agent } from '../agent/agent.ts';
import { EverturnError, errorText } from '../common/errors.ts';

export interface AgentsFile {
  /** As the person wrote it, or as it was found. */
  path: string;
  agents: Agent[];
  providers: Provider[];
}

const extensions = ['ts', 'js', 'mjs'];
const packageName = 'everturn';
const agentsName = 'everturn.agents';
const workflowsName = 'everturn.workflows';
const example = "export const helper = defineAgent({ name: 'helper', model: 'anthropic/claude-sonnet-4-5' });";

/** The agents file: the flag, else EVERTURN_AGENTS, else `everturn.agents.{ts,js,mjs}` of the current folder. */
export async function loadAgents(flag: string | undefined): Promise<AgentsFile> {
  const path = flag || process.env.EVERTURN_AGENTS || findByName(agentsName);
  if (path === undefined) {
    throw new EverturnError(
      'invalid_config',
      `There is no agents file: neither --agents nor EVERTURN_AGENTS is given, and this folder has no ${agentsName}.ts, .js or .mjs. ` +
        `Write ${agentsName}.ts: import { defineAgent } from '${packageName}'; ${example}`,
    );
  }
  requireFile('agents', path);
  const module = await load(path);
  const agents = agentsIn(path, module);
  if (agents.length === 0) {
    throw new EverturnError(
      'invalid_config',
      `${path} exports no agents. Export what defineAgent returns: ${example}`,
      { details: { file: path } },
    );
  }
  return { path, agents, providers: providersIn(path, module) };
}

/** The file with the policies: the flag, else EVERTURN_WORKFLOWS, else `everturn.workflows.{ts,js,mjs}`, else none. */
export function findWorkflows(flag: string | undefined): string | undefined {
  const path = flag || process.env.EVERTURN_WORKFLOWS || findByName(workflowsName);
  if (path === undefined) return undefined;
  requireFile('workflows', path);
  return resolve(path);
}

function findByName(name: string): string | undefined {
  return extensions.map((extension) => `${name}.${extension}`).find((file) => existsSync(file));
}

function requireFile(what: string, path: string): void {
  if (statSync(path, { throwIfNoEntry: false })?.isFile()) return;
  throw new EverturnError('not_found', `There is no ${what} file ${path}.`, { details: { file: path } });
}

async function load(path: string): Promise<Record<string, unknown>> {
  try {
    return (await import(pathToFileURL(resolve(path)).href)) as Record<string, unknown>;
  } catch (error) {
    const missing = (error as { code?: unknown }).code === 'ERR_MODULE_NOT_FOUND';
    const hint =
      missing && errorText(error).includes("package 'everturn'")
        ? ' Install it beside the file: npm install everturn.'
        : '';
    throw new EverturnError('invalid_config', `The agents file ${path} cannot be loaded: ${errorText(error)}.${hint}`, {
      cause: error,
      details: { file: path },
    });
  }
}

/** Every export that is an agent, and those of the list `agents`; each once, in the order of the names. */
function agentsIn(path: string, module: Record<string, unknown>): Agent[] {
  const { agents: list = [], ...others } = module;
  if (!Array.isArray(list) && !isAgent(list)) throw invalid(path, 'agents must be a list of what defineAgent returns');
  const listed: unknown[] = Array.isArray(list) ? list : [list];
  const wrong = listed.findIndex((item) => !isAgent(item));
  if (wrong >= 0) throw invalid(path, `agents[${wrong}] was not made with defineAgent`);
  return [...new Set([...listed, ...Object.values(others)].filter(isAgent))];
}

function providersIn(path: string, { providers = [] }: Record<string, unknown>): Provider[] {
  if (!Array.isArray(providers)) throw invalid(path, 'providers must be a list');
  const wrong = providers.findIndex((item: unknown) => typeof (item as Provider | null)?.id !== 'string');
  if (wrong >= 0)
    throw invalid(path, `providers[${wrong}] is no provider: openAICompatible and createProvider make them`);
  return providers as Provider[];
}

function isAgent(value: unknown): value is Agent {
  const agent = value as Partial<Agent> | null | undefined;
  return typeof agent === 'object' && typeof agent?.name === 'string' && 'retry' in agent && 'lingerMs' in agent;
}

function invalid(path: string, what: string): EverturnError {
  return new EverturnError('invalid_config', `${basename(path)}: ${what}.`, { details: { file: path } });
}
