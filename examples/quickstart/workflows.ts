// What Temporal runs in its sandbox. A policy of an agent would stand here: definePolicy('shop', { … }).
export * from 'everturn/workflows';
