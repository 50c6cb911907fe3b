# Adds up yesterday's orders and posts a report to a chat channel.
#   mem run docs/examples/nightly.hcl --input url=https://shop.example.com/orders --secret hook=env:SLACK_WEBHOOK
# See what would be sent, without sending it: --dry-run. Repeat an old night: --now 2026-03-01T03:00:00Z
workflow "nightly" {
  description = "Yesterday's orders"

  input "url" {
    type        = string
    description = "Gives a JSON list of {customer, total, at}"
  }

  locals {
    # timestamp() is the start of the run, the same in every node and on resume
    until = timestamp()
    since = timeadd(local.until, "-24h")
    day   = formatdate("DD MMM YYYY", local.since)
  }

  node cron night {
    expression = "0 3 * * *"
    timezone   = "Europe/Berlin"
  }

  node http orders {
    url   = input.url
    query = { since = local.since }

    retry {
      attempts = 5
      backoff  = "1s"
    }
  }

  node filter yesterday {
    items     = nodes.orders.output.body
    condition = timecmp(item.at, local.since) >= 0 && timecmp(item.at, local.until) < 0
  }

  node sort largest {
    items = nodes.yesterday.output.items
    field = "total"
    order = "desc"
  }

  node aggregate revenue {
    items     = nodes.yesterday.output.items
    operation = "sum"
    field     = "total"
  }

  node transform report {
    template = {
      text = <<-EOT
        Orders of ${local.day}: ${nodes.yesterday.output.count}, ${format("%.2f", nodes.revenue.output.result)} EUR
        %{for order in slice(nodes.largest.output.items, 0, min(3, nodes.largest.output.count))~}
        - ${order.customer}: ${format("%.2f", order.total)} EUR
        %{endfor~}
      EOT
    }
  }

  node slack post {
    webhookUrl = secret.hook
    text       = nodes.report.output.text
  }

  edge night orders {}
  edge orders yesterday {}
  edge yesterday largest {}
  edge yesterday revenue {}
  edge largest report {}
  edge revenue report {}
  edge report post {}
}
