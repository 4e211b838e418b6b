/** The workflow code of the test suite, bundled once. Policies of test agents are defined here. */
export * from 'everturn/workflows';

import '../conformance/policies.ts';
import '../hooks/policies.ts';
import '../loop/policies.ts';
