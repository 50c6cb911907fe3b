/** What steers a terminal, or lets a text read in another order than its own; line ends and tabs do neither. */
const STEERING = /[^\P{Cc}\n\t]|[\u202a-\u202e\u2066-\u2069]/gu

/** A text with escapes, as in JSON, in place of what would make it look like another one to whoever reads it. */
export const tame = (text: string): string =>
  text.replace(STEERING, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)
