"""The pages of products."""

from django.urls import NoReverseMatch, reverse

from webapp.bench.products import Kind, Product


def product_address(product: Product) -> str:
    """ "" if the product cannot exist."""
    try:
        if product.kind is Kind.HOST:
            return reverse("host", args=(product.value,))
        if product.kind is Kind.TARGET:
            return reverse("host_target", args=product.value.split("/", 1))
        if product.kind is Kind.RUN:
            return reverse("run", args=(product.number,))
        if product.kind is Kind.IMPORT:
            return reverse("import", args=(product.number,))
        return reverse("product", args=(product.kind.value, product.value))
    except NoReverseMatch:  # a name that nothing can have
        return ""
