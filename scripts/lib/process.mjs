// Small process helpers of the scripts: run a command, be the only one who does. Node 20, no packages.

import { spawnSync } from 'node:child_process';
import { linkSync, mkdirSync, readFileSync, realpathSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

/** A step that cannot work; its message says what to do. */
export class SetupError extends Error {}

/** @typedef {(command: string, args: string[], options: { cwd: string, env: NodeJS.ProcessEnv }) => boolean} Run */

/** Runs a command with its output shown; true when it exits with 0, false also when it does not exist. @type {Run} */
export function runCommand(command, args, { cwd, env }) {
  const shell = process.platform === 'win32' && command === 'npm';
  return spawnSync(command, args, { cwd, env, shell, stdio: ['ignore', 'inherit', 'inherit'] }).status === 0;
}

/** What a command prints, or undefined when it cannot be run. @param {string} command @param {string[]} args */
export function outputOf(command, args) {
  const result = spawnSync(command, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'], timeout: 30_000 });
  return result.status === 0 ? result.stdout.trim() : undefined;
}

/** npm replaces the Node in node_modules, so it must not itself run on that one. @param {NodeJS.ProcessEnv} env */
export function withoutLocalBin(env) {
  const outside = (env.PATH ?? '').split(delimiter).filter((entry) => !entry.endsWith(join('node_modules', '.bin')));
  return { ...env, PATH: outside.join(delimiter) };
}

/** Whether the module with this `import.meta.url` is what Node was started with. @param {string} url */
export function isMain(url) {
  return process.argv[1] !== undefined && realpathSync(process.argv[1]) === fileURLToPath(url);
}

/**
 * Runs `body` while no other process on this machine holds the lock. A lock whose owner has died is taken over.
 * @template T
 * @param {string} path @param {() => Promise<T>} body @param {() => void} onWait called once, when there is a wait
 * @returns {Promise<T>}
 */
export async function withLock(path, body, onWait) {
  mkdirSync(dirname(path), { recursive: true });
  for (let waited = false; !takeLock(path); waited = true) {
    if (!waited) onWait();
    await delay(100);
  }
  try {
    return await body();
  } finally {
    rmSync(path, { force: true });
  }
}

/** @param {string} path */
function takeLock(path) {
  const own = `${path}.${process.pid}`;
  try {
    // A link appears with its content, so nobody reads a lock that does not name its owner yet.
    writeFileSync(own, String(process.pid));
    linkSync(own, path);
    return true;
  } catch (error) {
    if (!isCode(error, 'EEXIST')) throw error;
    dropStale(path, own);
    return false;
  } finally {
    rmSync(own, { force: true });
  }
}

/** Removes the lock of a process that has died. @param {string} path @param {string} aside */
function dropStale(path, aside) {
  try {
    const owner = readFileSync(path, 'utf8');
    const abandoned = Date.now() - statSync(path).mtimeMs > 30 * 60_000;
    if (isAlive(Number(owner)) && !abandoned) return;
    renameSync(path, aside);
    // Another process may have done the same and taken the lock between the two lines: give it back.
    if (readFileSync(aside, 'utf8') !== owner) linkSync(aside, path);
  } catch (error) {
    if (!isCode(error, 'ENOENT')) throw error; // released meanwhile
  }
}

/** @param {number} pid */
function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return isCode(error, 'EPERM');
  }
}

/** @param {unknown} error @param {string} code */
function isCode(error, code) {
  return typeof error === 'object' && error !== null && 'code' in error && error.code === code;
}
