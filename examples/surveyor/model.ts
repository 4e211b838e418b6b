import type { Provider } from '@earendil-works/pi-ai';
import { openAICompatible } from 'everturn';
import { offlineModelRef, offlineProvider } from './offline-model.ts';

export interface ModelChoice {
  /** "provider/model-id" */
  ref: string;
  /** Providers that pi-ai does not have by itself. */
  providers: Provider[];
  /** For people: which model it is, and why. */
  note: string;
}

export const anthropicModelRef = 'anthropic/claude-sonnet-5-5';
export const openAIModelRef = 'openai/gpt-6.1-sol';

/**
 * The model that the environment asks for. SURVEYOR_MODEL names one; else a key or a server decides; without any it is
 * the offline model. The offline provider is always there, so that its sessions can be read and gone on with.
 * @throws Error when OPENAI_BASE_URL is set without OPENAI_MODEL and its server lists no model
 */
export async function chooseModel(env: NodeJS.ProcessEnv): Promise<ModelChoice> {
  const offline = offlineProvider();
  const { SURVEYOR_MODEL: named, OPENAI_BASE_URL: baseUrl, OPENAI_API_KEY: apiKey } = env;
  if (baseUrl) {
    const id = env.OPENAI_MODEL || (await firstModelOf(baseUrl, apiKey));
    const compatible = openAICompatible({ baseUrl, ...(apiKey ? { apiKey } : {}), models: [{ id }] });
    const ref = named || `${compatible.id}/${id}`;
    return { ref, providers: [offline, compatible as Provider], note: `${ref}, at OPENAI_BASE_URL` };
  }
  const providers = [offline];
  if (named) return { ref: named, providers, note: `${named}, named by SURVEYOR_MODEL` };
  if (env.ANTHROPIC_API_KEY)
    return { ref: anthropicModelRef, providers, note: `${anthropicModelRef}, with ANTHROPIC_API_KEY` };
  if (apiKey) return { ref: openAIModelRef, providers, note: `${openAIModelRef}, with OPENAI_API_KEY` };
  return {
    ref: offlineModelRef,
    providers,
    note: `${offlineModelRef}: no API key is set, so an offline model decides from the real tool results`,
  };
}

/** Most local servers serve one model, so its name need not be told. */
async function firstModelOf(baseUrl: string, apiKey: string | undefined): Promise<string> {
  const url = `${baseUrl.replace(/\/+$/, '')}/models`;
  let why: string;
  try {
    const headers: Record<string, string> = apiKey ? { authorization: `Bearer ${apiKey}` } : {};
    const response = await fetch(url, { headers, signal: AbortSignal.timeout(5_000) });
    const body = (await response.json()) as { data?: { id?: unknown }[] };
    const id = body.data?.[0]?.id;
    if (typeof id === 'string') return id;
    why = `HTTP ${response.status} without a list of models`;
  } catch (error) {
    why = (error as Error).message;
  }
  throw new Error(`OPENAI_MODEL is not set, and ${url} did not say which model to use: ${why}. Set OPENAI_MODEL.`);
}
