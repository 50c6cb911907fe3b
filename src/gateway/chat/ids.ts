import { sha256 } from '../../base/hash.ts'

/** What Claude takes as the id of a call, at Anthropic and on Bedrock; models of others write `functions.read:0`. */
const CLAUDES = /^[\w-]{1,64}$/
const OPENAI_LENGTH = 40
const USER_LENGTH = 64

/** The same for a call and its result. */
export const claudeCallId = (id: string): string => (CLAUDES.test(id) ? id : shortened(id))

/** OpenAI takes any characters, but not many. */
export const openAiCallId = (id: string): string => (id.length <= OPENAI_LENGTH ? id : shortened(id))

/** OpenAI refuses longer ones, such as coding agents send to Anthropic; the same user stays the same. */
export const openAiUser = (user: string): string => (user.length <= USER_LENGTH ? user : sha256(user))

const shortened = (id: string): string => `call_${sha256(id).slice(0, 24)}`
