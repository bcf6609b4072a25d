# What the other scripts here share.
function plain(text) {
    gsub(/&lt;/, "<", text); gsub(/&gt;/, ">", text); gsub(/&quot;/, "\"", text); gsub(/&apos;/, "\047", text)
    gsub(/&amp;/, "\\&", text)
    return text
}
