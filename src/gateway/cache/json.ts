import type { Json } from '../chat/json.ts'

export const isMap = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Empty where there is none. */
export const mapOf = (value: unknown): Json => (isMap(value) ? value : {})

/** The objects of a list; empty where there is none. */
export const mapsOf = (value: unknown): Json[] => (Array.isArray(value) ? value.filter(isMap) : [])

export const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')
