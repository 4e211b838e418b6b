// `node scripts/run.mjs <file> [args]`: sets the clone up, then runs the file on the project's Node with the project's
// own sources behind `everturn/...` imports. The npm scripts that must work in a fresh clone start here.

import { spawn } from 'node:child_process';
import { isMain, SetupError } from './lib/process.mjs';
import { setup } from './setup.mjs';

const flags = ['--conditions=everturn-source', '--disable-warning=ExperimentalWarning'];

/**
 * Runs Node with this process's terminal. A signal reaches the program, and its exit code comes back, so what it has
 * started is ended by itself.
 * @param {string[]} args @returns {Promise<number>} the exit code
 */
export async function runOnProjectNode(args) {
  const { node } = await setup({ quiet: true });
  const child = spawn(node, [...flags, ...args], { stdio: 'inherit' });
  // Ctrl-C reaches the whole group by itself; this process only has to outlive it.
  process.on('SIGINT', () => undefined);
  process.on('SIGTERM', () => child.kill('SIGTERM'));
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code) => resolve(code ?? 1));
  });
}

if (isMain(import.meta.url)) {
  try {
    process.exitCode = await runOnProjectNode(process.argv.slice(2));
  } catch (error) {
    if (!(error instanceof SetupError)) throw error;
    console.error(`setup: ${error.message}`);
    process.exitCode = 1;
  }
}
