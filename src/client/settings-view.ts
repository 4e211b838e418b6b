import type { SessionTreeEntry, ThinkingLevel } from '../common/entries.ts';
import type { SessionEvent } from '../common/events.ts';

type Update = Extract<SessionEvent, { type: 'model_update' | 'thinking_level_update' | 'tools_update' }>;

/** pi's events for changes of settings, made from their entries. A value before the first change that was read is null. */
export class SettingsView {
  private model: string | null = null;
  private level: ThinkingLevel | null = null;
  private tools: string[] | null = null;

  update(entry: SessionTreeEntry): Update | undefined {
    switch (entry.type) {
      case 'model_change': {
        const previousModel = this.model;
        this.model = `${entry.provider}/${entry.modelId}`;
        return { type: 'model_update', model: this.model, previousModel, source: 'set' };
      }
      case 'thinking_level_change': {
        const previousLevel = this.level;
        this.level = entry.thinkingLevel;
        return { type: 'thinking_level_update', level: this.level, previousLevel };
      }
      case 'active_tools_change': {
        const previousActiveToolNames = this.tools;
        this.tools = entry.activeToolNames;
        return { type: 'tools_update', activeToolNames: this.tools, previousActiveToolNames, source: 'set' };
      }
      default:
        return undefined;
    }
  }
}
