import { existsSync, globSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from '@jest/globals';
import { parse } from 'yaml';
import { z } from 'zod';

const root = fileURLToPath(new URL('..', import.meta.url));
const read = (path: string) => readFileSync(`${root}/${path}`, 'utf8');

const service = z.object({
  image: z.string().optional(),
  build: z.string().optional(),
  command: z.array(z.string()).optional(),
  environment: z.record(z.string(), z.string()).default({}),
  volumes: z.array(z.string()).default([]),
  ports: z.array(z.string()).default([]),
  healthcheck: z.object({ test: z.array(z.string()) }).optional(),
  depends_on: z.record(z.string(), z.object({ condition: z.string() })).default({}),
});
const composeFile = z.object({ services: z.record(z.string(), service), volumes: z.record(z.string(), z.null()) });

const compose = composeFile.parse(parse(read('docker-compose.yml'), { merge: true }));
const services = Object.entries(compose.services);
const named = (name: string) => {
  const found = compose.services[name];
  if (!found) throw new Error(`no service ${name}`);
  return found;
};

test('compose starts a store, a stream, a Temporal server with its UI, and a worker', () => {
  expect(Object.keys(compose.services).sort()).toEqual(
    ['postgres', 'redis', 'temporal', 'temporal-namespace', 'temporal-schema', 'temporal-ui', 'worker'].sort(),
  );
});

test('every image has a version of its own, never latest', () => {
  for (const [name, { image, build }] of services) {
    if (build) continue;
    expect({ name, image }).toEqual({ name, image: expect.stringMatching(/:\d+(\.\d+)*(-\w+)?$/) });
  }
  for (const from of read('Dockerfile').matchAll(/^FROM (\S+)/gm)) expect(from[1]).toMatch(/:\d+/);
});

test('a service waits for what it needs, by a condition that the other can meet', () => {
  const needs = Object.fromEntries(services.map(([name, { depends_on }]) => [name, Object.keys(depends_on)]));
  expect(needs).toEqual({
    postgres: [],
    redis: [],
    'temporal-schema': ['postgres'],
    temporal: ['temporal-schema'],
    'temporal-namespace': ['temporal'],
    'temporal-ui': ['temporal'],
    worker: ['temporal-namespace'],
  });
  for (const [, { depends_on }] of services) {
    for (const [other, { condition }] of Object.entries(depends_on)) {
      const met = named(other).healthcheck ? 'service_healthy' : 'service_completed_successfully';
      expect({ other, condition }).toEqual({ other, condition: met });
    }
  }
});

test('the worker finds the server of the same file, and keeps its store on a volume', () => {
  const { environment, volumes } = named('worker');
  expect(environment.TEMPORAL_ADDRESS?.split(':')[0]).toBe('temporal');
  const [volume, folder] = volumes.find((each) => each.startsWith('store-data:'))?.split(':') ?? [];
  expect(volume).toBe('store-data');
  expect(environment.EVERTURN_STORE?.startsWith(`${folder}/`)).toBe(true);
});

test('the agents that the worker is given are mounted where they can import the package', () => {
  const { environment, volumes } = named('worker');
  const [, from, folder] =
    volumes.map((each) => /^\$\{EVERTURN_AGENTS_DIR:-([^}]+)\}:([^:]+):ro$/.exec(each)).find(Boolean) ?? [];
  const file = environment.EVERTURN_AGENTS?.slice((folder ?? '').length);
  expect(environment.EVERTURN_AGENTS).toBe(`${folder}${file}`);
  expect(folder?.startsWith('/app/')).toBe(true);
  expect(read(`${from}${file}`)).toContain("from 'everturn'");
});

test('what must last is on a volume', () => {
  const kept = [...named('postgres').volumes, ...named('worker').volumes].map((volume) => volume.split(':')[0]);
  expect(kept).toEqual(expect.arrayContaining(Object.keys(compose.volumes)));
});

test('no port is open to the network', () => {
  for (const [name, { ports }] of services) {
    for (const port of ports) expect({ name, port }).toEqual({ name, port: expect.stringMatching(/^127\.0\.0\.1:/) });
  }
});

test('the dynamic config that the server is told to read is mounted, exists and lifts the dispatch limit', () => {
  const { volumes, environment } = named('temporal');
  const [from = '', to = ''] = volumes[0]?.split(':') ?? [];
  const inside = `/etc/temporal/${environment.DYNAMIC_CONFIG_FILE_PATH}`;
  expect(inside.startsWith(`${to}/`)).toBe(true);
  const settings: unknown = parse(read(inside.replace(to, from)));
  expect(settings).toMatchObject({ 'history.transferProcessorMaxPollRPS': [{ value: 100 }] });
});

test('the worker runs a command that the image and the command line have', () => {
  const dockerfile = read('Dockerfile');
  const { command } = named('worker');
  expect(JSON.parse(dockerfile.match(/^CMD (.*)$/m)?.[1] ?? 'null')).toEqual(command);
  const manifest = z.object({ bin: z.object({ everturn: z.string() }) }).parse(JSON.parse(read('package.json')));
  expect(dockerfile).toContain(`ln -s /app/${manifest.bin.everturn} /usr/local/bin/everturn`);
  const cli = globSync('src/cli/**/*.ts', { cwd: root }).map(read).join('\n');
  const commands = [...cli.matchAll(/\bcommand\(\s*'([\w-]+)/g)].map((match) => match[1]);
  expect(commands).toContain(command?.[1]);
});

test('the image gets every file that its build copies', () => {
  const allowed = read('.dockerignore')
    .split('\n')
    .filter((line) => line.startsWith('!'));
  const copied = [...read('Dockerfile').matchAll(/^COPY (?!--from)(.*) \S+$/gm)].flatMap((line) => line[1]?.split(' '));
  expect(copied.length).toBeGreaterThan(3);
  for (const file of copied) {
    expect(allowed).toContain(`!${file}`);
    expect({ file, exists: existsSync(`${root}/${file}`) }).toEqual({ file, exists: true });
  }
});
