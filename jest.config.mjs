const swc = {
  jsc: { target: 'es2024', parser: { syntax: 'typescript' } },
  module: { type: 'es6' },
  sourceMaps: 'inline',
};

/** @type {import('jest').Config} */
const config = {
  testMatch: ['<rootDir>/test/**/*.test.ts'],
  modulePathIgnorePatterns: ['<rootDir>/dist/', '<rootDir>/.cache/'],
  extensionsToTreatAsEsm: ['.ts'],
  transform: { '\\.ts$': ['@swc/jest', swc] },
  // `everturn/worker` and the like mean this repository's sources.
  testEnvironmentOptions: { customExportConditions: ['everturn-source', 'node', 'node-addons'] },
  moduleNameMapper: process.env.EVERTURN_LOG
    ? {}
    : { '^@temporalio/worker$': '<rootDir>/test/support/quiet-worker.cjs' },
  globalSetup: '<rootDir>/test/support/global-setup.ts',
  globalTeardown: '<rootDir>/test/support/global-teardown.ts',
  testTimeout: 60_000,
  maxWorkers: 2,
};

export default config;
