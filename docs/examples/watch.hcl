# Asks a service whether it is well, and tells a Slack channel when it is not.
#   mem run docs/examples/watch.hcl --input url=https://example.com/healthz --secret hook=env:SLACK_WEBHOOK
# The run fails (exit code 4) when the service does, so that cron or CI sees it too.
workflow "watch" {
  input "url" {
    type        = string
    description = "What to ask"
  }

  input "service" {
    type    = string
    default = "the service"
  }

  node cron every_five_minutes { expression = "*/5 * * * *" }

  node http ask {
    url     = input.url
    timeout = "5s"

    retry {
      attempts = 3
      backoff  = "200ms"
    }
  }

  # nodes.ask.error has the code and the text of what went wrong
  node slack alert {
    webhookUrl = secret.hook
    text       = "${input.service} does not answer: ${nodes.ask.error.message} (tried ${nodes.ask.error.attempts} times)"
  }

  edge every_five_minutes ask {}
  # "always" goes on after the failure, but does not forgive it; "error" would let the run succeed
  edge ask alert {
    on   = "always"
    when = nodes.ask.status == "failed"
  }
}
