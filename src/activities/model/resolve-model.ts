import type { Api, AuthContext, Model, Models } from '@earendil-works/pi-ai';
import { EverturnError, errorText } from '../../common/errors.ts';

/** 'provider/model-id' (the id may contain slashes), or the two apart. */
export type ModelRef = string | { provider: string; id: string };

/** Finds a chat model. Throws `unknown_model`, which names near matches, or the known providers if that is the trouble. */
export function resolveModel(models: Models, ref: ModelRef): Model<Api> {
  const { provider, id } = splitRef(ref);
  const model = provider === undefined ? undefined : models.getModel(provider, id);
  if (model !== undefined) return model;

  const wanted = provider === undefined ? id : `${provider}/${id}`;
  const providers = models.getProviders().map((known) => known.id);
  const known = models.getModels().map((each) => `${each.provider}/${each.id}`);
  const near = nearMatches(wanted, known);
  const details = { model: wanted, providers, near };
  const hint = near.length === 0 ? '' : ` Did you mean ${near.join(', ')}?`;
  if (provider === undefined) {
    throw new EverturnError('unknown_model', `A model is written provider/id; "${id}" has no provider.${hint}`, {
      details,
    });
  }
  if (!providers.includes(provider)) {
    const list = providers.length === 0 ? 'none is registered' : `known are ${providers.join(', ')}`;
    throw new EverturnError('unknown_model', `Unknown provider "${provider}" in "${wanted}": ${list}.${hint}`, {
      details,
    });
  }
  const some = models
    .getModels(provider)
    .slice(0, 5)
    .map((each) => each.id);
  const list = some.length === 0 ? ' It lists no models.' : ` It has, among others, ${some.join(', ')}.`;
  throw new EverturnError('unknown_model', `Provider "${provider}" has no model "${id}".${hint === '' ? list : hint}`, {
    details,
  });
}

/**
 * Checks, without any network request, that a credential for the model's provider is configured.
 * Throws `no_api_key`, which names the environment variables to set; `unknown_model` if its provider is not there;
 * `model_failed` (retryable) if the credential store cannot be read.
 */
export async function checkModelAuth(models: Models, model: Model<Api>): Promise<void> {
  if (models.getProvider(model.provider) === undefined) {
    throw new EverturnError('unknown_model', `Unknown provider "${model.provider}" of model "${model.id}"`);
  }
  let check: unknown;
  try {
    check = await models.checkAuth(model.provider);
  } catch (error) {
    throw new EverturnError('model_failed', `Credentials of ${model.provider}: ${errorText(error)}`, {
      retryable: true,
      cause: error,
    });
  }
  if (check !== undefined) return;
  throw new EverturnError('no_api_key', await missingKeyText(models, model), {
    details: { provider: model.provider, variables: await keyVariables(models, model.provider) },
  });
}

/** What to tell a person whose provider has no credential. `reason` is added when it says more than that. */
export async function missingKeyText(models: Models, model: Model<Api>, reason = ''): Promise<string> {
  const variables = await keyVariables(models, model.provider);
  const set = variables.length === 0 ? 'Configure its credential' : `Set ${variables.join(' or ')}`;
  const detail =
    /^(Provider is not configured|No API key for provider): /.test(reason) || reason === '' ? '' : ` (${reason})`;
  return `No API key for provider "${model.provider}".${detail} ${set}, or store a credential for it.`;
}

/**
 * The environment variables that the provider's own auth code asks for when it has nothing: it is run against an empty
 * environment which notes the names. Ordinary keys come first.
 */
async function keyVariables(models: Models, providerId: string): Promise<string[]> {
  const auth = models.getProvider(providerId)?.auth.apiKey;
  const names = new Set<string>();
  const ctx: AuthContext = {
    env: async (name) => {
      names.add(name);
      return undefined;
    },
    fileExists: async () => false,
  };
  try {
    // A provider with a `check` may run commands in `resolve`.
    const input = { ctx, signal: AbortSignal.timeout(1000) };
    await (auth?.check === undefined ? auth?.resolve(input) : auth.check(input));
  } catch {
    // The names noted so far are still true.
  }
  const rank = (name: string) => (name.endsWith('_API_KEY') ? 0 : /KEY|TOKEN/.test(name) ? 1 : 2);
  return [...names].sort((a, b) => rank(a) - rank(b));
}

function splitRef(ref: ModelRef): { provider?: string; id: string } {
  if (typeof ref !== 'string') return ref;
  const slash = ref.indexOf('/');
  return slash <= 0 ? { id: ref } : { provider: ref.slice(0, slash), id: ref.slice(slash + 1) };
}

/** Up to five known names, best first: those that contain the wanted id or differ from it in few characters. */
function nearMatches(wanted: string, known: string[]): string[] {
  const needle = wanted.toLowerCase();
  const id = needle.slice(needle.indexOf('/') + 1);
  const scored = known.map((name) => {
    const full = name.toLowerCase();
    const own = full.slice(full.indexOf('/') + 1);
    const contains = id.length >= 3 && own.includes(id);
    return { name, score: contains ? 0 : Math.min(distance(needle, full), distance(id, own) + 1) };
  });
  const limit = Math.max(2, Math.floor(id.length / 3));
  return scored
    .filter(({ score }) => score <= limit)
    .sort((a, b) => a.score - b.score || a.name.length - b.name.length || (a.name < b.name ? -1 : 1))
    .slice(0, 5)
    .map(({ name }) => name);
}

/** Levenshtein distance. */
function distance(a: string, b: string): number {
  let previous = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i += 1) {
    const row = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const replace = (previous[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      row.push(Math.min(replace, (previous[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1));
    }
    previous = row;
  }
  return previous[b.length] ?? 0;
}
