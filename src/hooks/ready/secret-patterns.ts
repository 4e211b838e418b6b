/**
 * Shapes of well-known secrets. Where only a part is the secret, it is the group of that name. Tools return what strangers
 * wrote, so none may take more than linear time on any text: what may stand inside of one cannot begin another.
 */
export const wellKnownSecrets: Record<string, RegExp> = {
  'private key':
    /-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----(?:[^-]|-(?!----)){0,20000}-----END [A-Z ]{0,40}PRIVATE KEY-----/,
  'anthropic key': /\bsk-ant-[A-Za-z0-9_-]{20,}/,
  'openai key': /\bsk-(?:proj-|svcacct-|admin-)?[A-Za-z0-9_-]{20,}/,
  'aws access key id': /\b(?:AKIA|ASIA)[A-Z0-9]{16}\b/,
  'github token': /\b(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{40,})/,
  'gitlab token': /\bglpat-[A-Za-z0-9_-]{20,}/,
  'slack token': /\bxox[abeoprs]-[A-Za-z0-9-]{10,}/,
  'google api key': /\bAIza[A-Za-z0-9_-]{35}/,
  'stripe key': /\b[rs]k_(?:live|test)_[A-Za-z0-9]{16,}/,
  'npm token': /\bnpm_[A-Za-z0-9]{36}/,
  'huggingface token': /\bhf_[A-Za-z0-9]{30,}/,
  'json web token': /(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}/,
  'password in a url': /\b[a-z][a-z0-9+.-]{1,20}:\/\/[^\s:/@]{1,200}:(?<secret>[^\s/@]{1,200})@/,
  'authorization header': /\b(?:Bearer|Basic)\s+(?<secret>[A-Za-z0-9._~+/-]{16,}={0,2})/,
  // Not an expression of a program that reads one: the model would write the replacement back into the file.
  'named value':
    /(?:password|passwd|secret|token|api_?key|access_?key|private_?key)["']?\s{0,4}[=:]\s{0,4}["']?(?<secret>(?=[A-Za-z+/_-]*\d)[A-Za-z0-9+/_-]{12,}={0,2})(?![\w.([])/i,
};

/** Characters at the end of a growing text in which the beginning of a secret is looked for. */
export const begunWithin = 8_192;

/**
 * The beginning of such a secret at the end of a text that is still growing: what comes may make it one, so a partial
 * result must not show it.
 */
export const begunSecrets: readonly RegExp[] = [
  /-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[\s\S]*$/,
  /\b(?:sk-|AKIA|ASIA|gh[pousr]_|github_pat_|glpat-|xox[abeoprs]-|AIza|[rs]k_(?:live|test)_|npm_|hf_|eyJ)[A-Za-z0-9._-]*$/,
  /\b(?:Bearer|Basic)\s+[A-Za-z0-9._~+/=-]*$/,
  /\b[a-z][a-z0-9+.-]{1,20}:\/\/[^\s:/@]{1,200}:[^\s/@]{0,200}$/,
  /(?:password|passwd|secret|token|api_?key|access_?key|private_?key)["']?\s{0,4}[=:]\s{0,4}["']?[A-Za-z0-9+/_=-]*$/i,
];

/** Names of fields whose texts are secrets whatever they look like. */
export const secretNames =
  /^(?:authorization|proxy-authorization|cookie|set-cookie|password|passwd|secret|token|credentials?|(?:api|access|private|secret)[_-]?key|(?:access|refresh|id|auth|session|bearer)[_-]?token|client[_-]?secret|x-api-key)$/i;
