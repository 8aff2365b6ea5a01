"""What a page or a file declares: title, author, date, opt-outs, licence."""
