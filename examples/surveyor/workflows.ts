// What runs inside Temporal. The surveyor needs no policy: its limit of turns is in the agent, and without a policy no
// message text enters the workflow's history. A `definePolicy('surveyor', { … })` would stand here.
export * from 'everturn/workflows';
