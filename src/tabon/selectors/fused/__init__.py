"""The `fused` selector and the parts that it adds up."""
