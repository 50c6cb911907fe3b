import { confirm, input, password, select } from '@inquirer/prompts'

/** Of a module of its own, so that the bundle of the frequent verbs loads the library only when there is a question. */
export const prompts = { confirm, input, password, select }
