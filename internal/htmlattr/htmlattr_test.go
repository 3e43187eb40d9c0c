package htmlattr

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCutRefresh(t *testing.T) {
	for content, want := range map[string][]string{
		"5": {"5", ""}, " 0 ; url = /a ": {"0", "/a"}, "0;URL='/a' b": {"0", "/a"}, `3,"/a`: {"3", "/a"},
		".5;/a": {"", "/a"}, "1.9 /a": {"1", "/a"}, "0;url/a": {"0", "url/a"}, "0;ur": {"0", "ur"}, "0;": {"0", ""},
		"": nil, "a": nil, "0a": nil, "-1;/a": nil,
	} {
		wait, ref, ok := CutRefresh(content)
		require.Equal(t, want != nil, ok, content)
		if ok {
			require.Equal(t, want, []string{wait, ref}, content)
		}
	}
}

// FuzzImages: every image is a piece of the list, and the pieces are in its order; a list that is put together
// again from them has the same images.
func FuzzImages(f *testing.F) {
	for _, list := range []string{"a 1x, b 2x", "a,b", ",a,,b , c", "a (,) 1x,b", "a, b", "data:,a 2x", "a\v1x"} {
		f.Add(list)
	}
	f.Fuzz(func(t *testing.T, list string) {
		images := func(list string) (all, again []string) {
			left := list
			for ref, descriptors, rest := CutImage(list); ref != ""; ref, descriptors, rest = CutImage(rest) {
				require.True(t, strings.HasSuffix(left, rest) && len(rest) < len(left))
				require.Contains(t, left[:len(left)-len(rest)], ref+descriptors)
				require.False(t, strings.ContainsAny(ref, Whitespace) || strings.Trim(ref, ",") != ref)
				left, all, again = rest, append(all, ref), append(again, ref+" "+descriptors)
			}
			return all, again
		}
		all, again := images(list)
		same, _ := images(strings.Join(again, ","))
		require.Equal(t, all, same)
		bytes, _, _ := CutImage([]byte(list))
		if len(all) > 0 {
			require.Equal(t, all[0], string(bytes))
		}
	})
}
