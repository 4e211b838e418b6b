import { EverturnError } from '../common/errors.ts';
import type { PromptByName } from '../common/signals.ts';
import type { AgentHarnessResources } from './harness-types.ts';

/** The text of a prompt by name. @throws EverturnError `invalid_argument` for an unknown skill or template, in pi's words */
export function expandByName(resources: AgentHarnessResources, prompt: PromptByName): string {
  if ('skill' in prompt) {
    const skill = resources.skills?.find((candidate) => candidate.name === prompt.skill);
    if (skill === undefined) throw new EverturnError('invalid_argument', `Unknown skill: ${prompt.skill}`);
    return skillText(skill, prompt.instructions);
  }
  const template = resources.promptTemplates?.find((candidate) => candidate.name === prompt.template);
  if (template === undefined)
    throw new EverturnError('invalid_argument', `Unknown prompt template: ${prompt.template}`);
  return fillTemplate(template.content, prompt.args);
}

/** pi's block (pi-semantics §2.4): the skill with where its references start from, then what the caller adds. */
function skillText(
  skill: { name: string; filePath: string; content: string },
  instructions: string | undefined,
): string {
  const folder = skill.filePath.replace(/\/+$/, '').replace(/\/?[^/]*$/, '') || '/';
  const block = `<skill name="${skill.name}" location="${skill.filePath}">\nReferences are relative to ${folder}.\n\n${skill.content}\n</skill>`;
  return instructions === undefined || instructions === '' ? block : `${block}\n\n${instructions}`;
}

/** pi's substitution, in its order: what $N inserts is scanned by the later steps. */
function fillTemplate(content: string, args: readonly string[]): string {
  const all = args.join(' ');
  return content
    .replace(/\$(\d+)/g, (_, number: string) => args[Number(number) - 1] ?? '')
    .replace(/\$\{@:(\d+)(?::(\d+))?\}/g, (_, from: string, length: string | undefined) => {
      const start = Math.max(0, Number(from) - 1);
      return args.slice(start, length === undefined ? undefined : start + Number(length)).join(' ');
    })
    .replaceAll('$ARGUMENTS', () => all)
    .replaceAll('$@', () => all);
}
