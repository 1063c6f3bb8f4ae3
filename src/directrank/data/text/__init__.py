"""Collections that come as text: judged pairs of query and document, and features of them."""
