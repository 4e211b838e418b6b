/** The suite's agents with policies that decide otherwise than when their histories were recorded. */
export * from 'everturn/workflows';

import { definePolicy } from 'everturn/workflows';

definePolicy('switching', { prepareNextTurn: () => ({ model: 'scripted/third' }) });

definePolicy('large', { shouldStopAfterTurn: () => true });
