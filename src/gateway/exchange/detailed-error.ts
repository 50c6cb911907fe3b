import { GatewayError } from '../errors.ts'

type Told = ReturnType<GatewayError['toAnthropic']>

/** A refusal with `details` beside the message, by which clients of Anthropic know what to do: `{error_code, …}`. */
export class DetailedError extends GatewayError {
  readonly #details: object

  constructor(details: object, ...refusal: ConstructorParameters<typeof GatewayError>) {
    super(...refusal)
    this.#details = details
  }

  override toAnthropic(requestId: string): Told & { error: { details: object } } {
    const told = super.toAnthropic(requestId)
    return { ...told, error: { ...told.error, details: this.#details } }
  }
}
