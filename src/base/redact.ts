/** A text without the tokens that got into it: of sessions, runners, virtual keys and metrics. */
export const redactTokens = (text: string): string => text.replace(/(mst|mrt|mvk|mmt)_[\w-]{43,}/g, '$1_[REDACTED]')
