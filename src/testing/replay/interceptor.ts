import { proxySinks, type Sinks, type WorkflowInterceptors } from '@temporalio/workflow';

// Workflow code: part of the bundle of a replay alone. It tells outside what each effect would be given, which Temporal's
// own replay does not compare.

export interface ReplaySinks extends Sinks {
  everturnReplay: {
    scheduled(seq: number, effect: string, local: boolean, input: unknown): void;
  };
}

/** @public Temporal looks for it by this name. */
export function interceptors(): WorkflowInterceptors {
  const { everturnReplay } = proxySinks<ReplaySinks>();
  return {
    outbound: [
      {
        scheduleActivity(input, next) {
          everturnReplay.scheduled(input.seq, input.activityType, false, input.args[0]);
          return next(input);
        },
        scheduleLocalActivity(input, next) {
          everturnReplay.scheduled(input.seq, input.activityType, true, input.args[0]);
          return next(input);
        },
      },
    ],
  };
}
