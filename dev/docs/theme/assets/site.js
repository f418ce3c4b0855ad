// Read by the theme's search.
var base_url = document.querySelector("meta[name=base-url]").content;

jQuery(function () {
  SphinxRtdTheme.Navigation.enable(true);
});
