/** The workflow code of the test suite, bundled once. Policies of test agents are defined here. */
export * from 'everturn/workflows';
