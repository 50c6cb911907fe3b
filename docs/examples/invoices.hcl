# Sums up overdue invoices for each customer and writes a reminder for each.
#   mem run docs/examples/invoices.hcl --input today=2026-03-01T00:00:00Z
workflow "invoices" {
  description = "Reminders for overdue invoices"

  input "today" {
    type    = string
    default = "2026-02-15T00:00:00Z"
  }

  locals {
    # a file beside this one; files elsewhere need --allow-path
    invoices = csvdecode(file("invoices.csv"))
  }

  node manual start {}

  node filter overdue {
    items     = local.invoices
    condition = timecmp(item.due, input.today) < 0
  }

  node sort by_amount {
    items = nodes.overdue.output.items
    by    = tonumber(item.amount)
    order = "desc"
  }

  node aggregate total {
    items     = nodes.overdue.output.items
    operation = "sum"
    value     = tonumber(item.amount)
  }

  node loop each {
    items       = nodes.by_amount.output.items
    concurrency = 4
  }

  node transform reminder {
    template = {
      to   = loop.item.customer
      text = "Reminder ${loop.index + 1}: please pay ${loop.item.amount}."
    }
  }

  node join reminders {}

  node transform summary {
    template = {
      total     = nodes.total.output.result
      reminders = nodes.reminders.output.results
    }
  }

  edge start overdue {}
  edge overdue by_amount {}
  edge overdue total {}
  edge by_amount each {}
  edge each reminder {}
  edge reminder reminders {}
  edge reminders summary {}
  edge total summary {}
}
