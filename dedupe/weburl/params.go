package weburl

import (
	"slices"
	"strings"
)

// trackingNames are the parameters of DropTracking, by the service that adds them. Parameters that
// also have a meaning on many sites (ref, source, cid) are not included.
var trackingNames = map[string][]string{
	"Adobe":      {"s_cid", "s_kwcid", "ef_id", "sc_cid"},
	"Branch":     {"_branch_match_id", "_branch_referrer"},
	"Drip":       {"__s"},
	"Facebook":   {"fbclid", "fb_action_ids", "fb_action_types", "fb_comment_id", "fb_source"},
	"Google":     {"gclid", "gclsrc", "dclid", "gbraid", "wbraid", "_ga", "_gl", "srsltid"},
	"Google Ads": {"gad_source", "gad_campaignid"},
	"HubSpot":    {"_hsenc", "_hsmi", "__hssc", "__hstc", "__hsfp", "hsctatracking"},
	"Impact":     {"irclickid", "irgwc"},
	"Instagram":  {"igshid", "igsh"},
	"Klaviyo":    {"_kx", "_ke"},
	"LinkedIn":   {"li_fat_id"},
	"Mailchimp":  {"mc_cid", "mc_eid", "mc_tc"},
	"MailerLite": {"ml_subscriber", "ml_subscriber_hash"},
	"Marketo":    {"mkt_tok"},
	"Matomo": {
		"pk_campaign", "pk_kwd", "pk_keyword", "pk_source", "pk_medium", "pk_content", "pk_cid",
		"piwik_campaign", "piwik_kwd", "piwik_keyword", "matomo_campaign",
	},
	"Microsoft":    {"msclkid"},
	"Omeda":        {"oly_anon_id", "oly_enc_id"},
	"OpenStat":     {"_openstat"},
	"Pinterest":    {"epik"},
	"Reddit":       {"rdt_cid"},
	"ResponseTap":  {"rtid"},
	"Snapchat":     {"sccid"},
	"TikTok":       {"ttclid"},
	"Twitter":      {"twclid"},
	"Vero":         {"vero_conv", "vero_id"},
	"WickedReport": {"wickedid"},
	"Yandex":       {"yclid", "ysclid", "ymclid"},
	"Zanox":        {"zanpid"},
}

// trackingPrefixes are prefixes whose services keep adding names: Google Analytics, Matomo and
// HubSpot's ads.
var trackingPrefixes = []string{"utm_", "mtm_", "hsa_"}

// sessionNames are parameters whose values are always session ids: Java, PHP, ASP, ColdFusion,
// osCommerce, Zend. For maybeSessionNames, it depends on the value.
var (
	sessionNames = []string{
		"jsessionid", "phpsessid", "aspsessionid", "asp.net_sessionid", "cfid", "cftoken",
		"oscsid", "zenid", "xtcsid",
	}
	maybeSessionNames = []string{"sid", "session", "sessid", "sessionid", "session_id"}
)

// minSessionID is the minimum length of a value that counts as random.
const minSessionID = 16

// maxTrackingName is the length of the longest of trackingNames.
const maxTrackingName = len("ml_subscriber_hash")

// isTrackingName is the set of trackingNames.
var isTrackingName = func() map[string]bool {
	set := make(map[string]bool)
	for _, names := range trackingNames {
		for _, name := range names {
			set[name] = true
		}
	}
	return set
}()

func isTracking(name string) bool {
	var lower [maxTrackingName]byte // on the stack, unlike the result of strings.ToLower
	n := copy(lower[:], name)
	for i, c := range lower[:n] {
		if isUpper(c) {
			lower[i] = c | 0x20
		}
	}
	for _, prefix := range trackingPrefixes {
		if strings.HasPrefix(string(lower[:n]), prefix) {
			return true
		}
	}
	return len(name) == n && isTrackingName[string(lower[:n])]
}

func isSession(name, value string) bool {
	is := func(other string) bool { return strings.EqualFold(name, other) }
	return slices.ContainsFunc(sessionNames, is) ||
		slices.ContainsFunc(maybeSessionNames, is) && looksRandom(value)
}

// looksRandom reports whether a value may be a session id: long, only letters and digits, with at
// least one letter and three digits. Words and plain numbers usually select content.
func looksRandom(value string) bool {
	letters, digits := 0, 0
	for i := range len(value) {
		switch c := value[i]; {
		case 'a' <= c|0x20 && c|0x20 <= 'z':
			letters++
		case '0' <= c && c <= '9':
			digits++
		default:
			return false
		}
	}
	return len(value) >= minSessionID && letters > 0 && digits > 2
}
